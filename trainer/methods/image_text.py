"""Image-text objectives: both towers embed their half of the batch, and the objective compares them."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from trainer import config
from trainer.analysis.answer_keys import answer_keys
from trainer.analysis.distinct import Matching
from trainer.data.content import matching_of
from trainer.data.views import JITTER, ViewStrength, augmented_view
from trainer.device import sent
from trainer.errors import UserError
from trainer.losses import cloob, convirt, dhn_nce, hopfield_info_nce, info_loob_pair, info_nce, siglip
from trainer.losses.right_answers import Answers, RightAnswers
from trainer.methods.batch import Batch
from trainer.methods.method import Material, Method
from trainer.models import TwoTowers

Embeddings = Float[Tensor, "n d"]


class ImageText(Method):
    """An objective of matched rows; what it learns besides the towers (a temperature) are its parameters.

    Attributes:
        masks: Whether right answers other than a pair's own are no negatives of it.
    """

    reads_texts: ClassVar[bool] = True

    def __init__(self, choice: Any, material: Material | None = None) -> None:
        super().__init__()
        self.choice = choice
        self.masks: bool = getattr(choice, "mask_duplicates", False)
        self.samples_sentences: bool = getattr(choice, "sample_sentences", False)
        self.matching = matching_of(material.pairs) if self.masks and material else None

    def answers_of(self, batch: Batch, where: torch.device = torch.device("cpu")) -> Answers:  # noqa: B008
        """Return which texts of a batch are right answers of which images; None where that masks nothing."""
        if self.matching is None or batch.rows is None:
            return None
        return self.answers_among(self.matching, batch.rows.numpy(), where)

    def answers_among(self, matching: Matching, rows: Int[np.ndarray, " n"], where: torch.device) -> Answers:
        """Return which texts of some rows of a split are right answers of which images, as this method masks them."""
        if not self.masks:
            return None
        keys = answer_keys(matching, rows)
        if not keys.pictures.shape[1]:
            return None
        return RightAnswers(sent(keys.pictures, where), sent(keys.captions, where))

    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Embeddings, Embeddings]:
        """Return unit embeddings of the images and of the texts."""
        return towers.encode_image(batch.images), towers.encode_text(batch.tokens)

    def compare(self, embedded: tuple[Embeddings, ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of unit embeddings; right answers of others are masked if configured."""
        answers = self.answers_of(batch, embedded[0].device)
        return self.loss(*embedded) if answers is None else self.loss(*embedded, answers=answers)

    @abstractmethod
    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return the loss of unit embeddings with pair k in row k; right answers are no negatives."""

    @property
    def takes_all_as_negatives(self) -> bool:
        """Unless it masks right answers; then its mask needs the training pictures."""
        return not self.masks

    @property
    def inv_tau(self) -> float:
        """The fixed inverse temperature, unless a subclass learns it."""
        return self.choice.inv_tau

    @property
    def beta(self) -> float:
        """The beta of the Hopfield retrieval; CLOOB's default for other objectives, so that curves can be compared."""
        return getattr(self.choice, "scale_hopfield", config.Cloob().scale_hopfield)


class ClipPairs(ImageText):
    """CLIP: symmetric InfoNCE; the logarithm of 1/tau is learned and clamped."""

    def __init__(self, choice: config.Clip, material: Material | None = None) -> None:
        super().__init__(choice, material)
        start = torch.tensor(math.log(choice.inv_tau))
        self.log_inv_tau = nn.Parameter(start, requires_grad=choice.learn_inv_tau)
        self._log_most = math.log(choice.inv_tau_max)

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return symmetric InfoNCE at the current temperature."""
        return info_nce(image, text, self.log_inv_tau.exp(), answers=answers)

    @property
    def learned_inv_tau(self) -> Float[Tensor, ""]:
        """The inverse temperature, on its device."""
        return self.log_inv_tau.detach().exp()

    @property
    def inv_tau(self) -> float:
        """The learned inverse temperature."""
        return self.learned_inv_tau.item()

    @property
    def inv_tau_limits(self) -> tuple[float, float] | None:
        """Between 1 and the configured maximum, if it is learned."""
        return (1.0, self.choice.inv_tau_max) if self.choice.learn_inv_tau else None

    def adopt(self, *, inv_tau: float | None, bias: float | None) -> None:
        """Start from the model's temperature, unless a fixed one is configured."""
        with torch.no_grad():
            if inv_tau is not None and self.log_inv_tau.requires_grad:
                self.log_inv_tau.fill_(min(math.log(inv_tau), self._log_most))

    def after_step(self) -> None:
        """Clamp 1/tau between 1 and its maximum, as in CLIP."""
        with torch.no_grad():
            if self.log_inv_tau.requires_grad:
                self.log_inv_tau.clamp_(0.0, self._log_most)


class CloobPairs(ImageText):
    """CLOOB: Hopfield retrieval, then InfoLOOB, both at fixed temperatures; without parameters."""

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return two InfoLOOBs of four retrievals, plus two of the embeddings themselves if the share is below 1."""
        choice = self.choice
        mixed = {"retrieval_share": choice.retrieval_share, "residual": choice.residual}
        return cloob(image, text, choice.inv_tau, choice.scale_hopfield, **mixed, answers=answers)


class HopfieldInfoNcePairs(ImageText):
    """InfoNCE among the results of Hopfield retrieval."""

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return the loss of four retrievals and two InfoNCEs."""
        return hopfield_info_nce(image, text, self.choice.inv_tau, self.choice.scale_hopfield, answers=answers)


class InfoLoobPairs(ImageText):
    """InfoLOOB in both directions."""

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return two InfoLOOBs, without retrieval."""
        return info_loob_pair(image, text, self.choice.inv_tau, answers=answers)


class ConVirtPairs(ImageText):
    """ConVIRT: weighted directions of InfoNCE, and its views of images; the towers have its projections."""

    def __init__(self, choice: config.ConVirt, material: Material | None = None) -> None:
        super().__init__(choice, material)
        self._seed = material.run.seed if material else 0
        self._look = None
        if material and (choice.flip or choice.turn or choice.jitter or choice.blur):
            crop = material.run.optimizer.crop_scale
            self._look = ViewStrength(
                crop, choice.jitter / JITTER, 0.0, choice.blur, choice.flip, turn=choice.turn, tint=False
            )

    def augmented(
        self, images: UInt8[Tensor, "n h w 3"], rows: Int[np.ndarray, " n"], *, epoch: int, view: int
    ) -> Float[Tensor, "n 3 h w"] | None:
        """Return the images cropped, mirrored, turned, jittered and blurred as configured; None for crops alone."""
        if self._look is None:
            return None
        return augmented_view(images, rows, self._look, seed=self._seed, epoch=epoch, view=view)

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return the weighted sum of InfoNCE in both directions."""
        return convirt(image, text, self.choice.inv_tau, self.choice.image_weight, answers=answers)


class DhnNcePairs(ImageText):
    """DHN-NCE in its closed form."""

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return the sum of both directions, each with its own hardness."""
        choice = self.choice
        betas = (choice.beta_image, choice.beta_text)
        return dhn_nce(image, text, choice.inv_tau, *betas, detach_weights=choice.detach_weights, answers=answers)


class SigLipPairs(ImageText):
    """SigLIP: the logarithm of the scale and the bias are learned."""

    def __init__(self, choice: config.SigLip, material: Material | None = None) -> None:
        super().__init__(choice, material)
        bias = choice.bias
        if choice.bias_from_batch and material:
            bias = -math.log(material.run.optimizer.batch_size - 1)
        self.log_scale = nn.Parameter(torch.tensor(math.log(choice.inv_tau)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))
        self._log_most = math.log(choice.inv_tau_max)

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return the sigmoid loss at the current scale and bias."""
        return siglip(image, text, self.log_scale.exp(), self.bias, answers=answers)

    @property
    def inv_tau_limits(self) -> tuple[float, float]:
        """Between 1 and the configured maximum."""
        return 1.0, self.choice.inv_tau_max

    @property
    def learned_inv_tau(self) -> Float[Tensor, ""]:
        """The scale, on its device."""
        return self.log_scale.detach().exp()

    @property
    def inv_tau(self) -> float:
        """The learned scale."""
        return self.learned_inv_tau.item()

    @property
    def logit_bias(self) -> float:
        """The learned bias."""
        return self.bias.detach().item()

    def adopt(self, *, inv_tau: float | None, bias: float | None) -> None:
        """Start from the model's scale, and from its bias if it has one."""
        with torch.no_grad():
            if inv_tau is not None and bias is not None:
                self.log_scale.fill_(min(math.log(inv_tau), self._log_most))
                self.bias.fill_(bias)

    def after_step(self) -> None:
        """Clamp the scale between 1 and its maximum, as in open_clip."""
        with torch.no_grad():
            self.log_scale.clamp_(0.0, self._log_most)


class PluginPairs(ImageText):
    """An objective of a plug-in; it has no parameters and masks no duplicates."""

    def loss(self, image: Embeddings, text: Embeddings, *, answers: Answers = None) -> Float[Tensor, ""]:
        """Return the loss of the plug-in.

        Raises:
            UserError: It is no scalar.
        """
        value = self.choice.loss(image, text)
        if not isinstance(value, Tensor) or value.ndim:
            raise UserError(f"The loss of {self.choice.label} is not a scalar. Correct the plug-in, then resume.")
        return value
