"""Decoders of another run: the mean picture, a diffusion decoder with its moving average, and two priors."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from trainer import config
from trainer.data.augment import DEVIATION, MEAN
from trainer.device import sent
from trainer.losses import denoising, noise_schedule
from trainer.methods.batch import Batch
from trainer.methods.method import Material, Method, generator_of, needed, unless
from trainer.models import TwoTowers
from trainer.models.decoder import Denoiser, DiffusionPrior, MeanPicture, ResidualPrior


class DecoderPictures(Method):
    """Learns pictures from the frozen embeddings of another run, and image embeddings from text embeddings.

    All parts learn side by side from the same batches; none has a part in another's gradient. Pictures have values from
    -1 to 1. What is drawn is a function of (seed, step), so that two decoders of one seed see the same noise.

    Attributes:
        mean_picture: Of an image embedding.
        denoiser: The U-Net that learns.
        averaged: The moving average of its weights, from which pictures are sampled.
        prior: From a text embedding to an image embedding, by regression.
        diffusion_prior: The same by diffusion.
        size: Side of the pictures in pixels.
    """

    reads_texts = True
    updates: Tensor
    alpha_bar: Tensor

    def __init__(
        self, choice: config.EmbeddingDecoder, material: Material | None, *, embed_dim: int = 0, seed: int = 0
    ) -> None:
        """Create it.

        Args:
            material: What it is trained on; None for one whose weights are loaded.
            embed_dim: Of the embeddings, where there is no material.
            seed: Of what is drawn in training, where there is no material.
        """
        super().__init__()
        embed_dim = embed_dim or needed(material).sizes.embed_dim
        self._choice = choice
        self._seed = material.run.seed if material else seed
        self.size = choice.size
        self.mean_picture = MeanPicture(embed_dim, choice.size, choice.width)
        self.denoiser = Denoiser(embed_dim, choice.width)
        self.averaged = copy.deepcopy(self.denoiser).requires_grad_(False)
        self.prior = ResidualPrior(embed_dim, choice.prior_width)
        self.diffusion_prior = DiffusionPrior(embed_dim, choice.prior_width)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self._made = 0
        self.register_buffer(
            "alpha_bar", noise_schedule.cosine_alpha_bar(noise_schedule.STEPS).float(), persistent=False
        )

    @torch.no_grad()
    def embed(self, towers: TwoTowers, batch: Batch) -> tuple[Float[Tensor, "n _"], ...]:
        """Return unit embeddings of images and texts, and the pictures as rows of pixels."""
        assert batch.images is not None
        assert batch.tokens is not None
        image, text = towers.encode_image(batch.images), towers.encode_text(batch.tokens)
        return image, text, pictures_of(batch.images, self.size).flatten(1)

    def compare(self, embedded: tuple[Float[Tensor, "n _"], ...], batch: Batch) -> Float[Tensor, ""]:
        """Return the sum of the four losses."""
        image, text, pixels = embedded
        pictures = pixels.view(-1, 3, self.size, self.size)
        chance = generator_of(self._seed, batch.step, image.device)
        mean = F.mse_loss(self.mean_picture(image).float(), pictures)
        return mean + self._denoising(pictures, image, chance) + self._priors(image, text, chance)

    def follow(self, towers: TwoTowers, done: float, discarded: Float[Tensor, ""] | None = None) -> None:
        """Move the average towards the weights, faster in the first updates, when they are far away."""
        self.updates += 1
        self._made += 1
        decay = min(self._choice.average, (1 + self._made) / (10 + self._made))
        share = unless(discarded, 1 - decay)
        with torch.no_grad():
            for slow, fast in zip(self.averaged.parameters(), self.denoiser.parameters(), strict=True):
                slow.lerp_(fast, share)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load the weights, and the count of updates where no device has to be waited for."""
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self._made = int(state_dict.get(f"{prefix}updates", 0))

    def _denoising(
        self, pictures: Float[Tensor, "n 3 s s"], image: Float[Tensor, "n d"], chance: torch.Generator
    ) -> Float[Tensor, ""]:
        n, where = len(pictures), pictures.device
        # Neither level 0, which has no noise to find, nor the last one, which has no picture left.
        level = torch.randint(1, noise_schedule.STEPS, (n,), generator=chance, device=where)
        noise = torch.randn(pictures.shape, generator=chance, device=where)
        dropped = torch.rand(n, generator=chance, device=where) < self._choice.dropped
        alpha_bar = self.alpha_bar[level]
        noisy = noise_schedule.noised(pictures, noise, alpha_bar)
        guess = self.denoiser(noisy, level / noise_schedule.STEPS, image, dropped)
        velocity = noise_schedule.velocity_of(pictures, noise, alpha_bar)
        return denoising(guess, velocity, alpha_bar, most_snr=self._choice.most_snr)

    def _priors(
        self, image: Float[Tensor, "n d"], text: Float[Tensor, "n d"], chance: torch.Generator
    ) -> Float[Tensor, ""]:
        target = scaled(image)
        level = torch.randint(1, noise_schedule.STEPS, (len(image),), generator=chance, device=image.device)
        noise = torch.randn(image.shape, generator=chance, device=image.device)
        noisy = noise_schedule.noised(target, noise, self.alpha_bar[level])
        foreseen = self.diffusion_prior(noisy, level / noise_schedule.STEPS, text)
        return F.mse_loss(self.prior(scaled(text)).float(), target) + F.mse_loss(foreseen.float(), target)


def parts_without_material(choice: config.EmbeddingDecoder, embed_dim: int, *, seed: int = 0) -> DecoderPictures:
    """Return a decoder for `embed_dim` columns, to load weights into or to train on other rows than embeddings."""
    return DecoderPictures(choice, None, embed_dim=embed_dim, seed=seed)


def scaled(rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Return unit rows with a mean square of 1 for each entry, as the priors see them."""
    return rows * math.sqrt(rows.shape[1])


def pictures_of(images: Float[Tensor, "n 3 h w"], size: int) -> Float[Tensor, "n 3 s s"]:
    """Return images that are normalized for a tower as pictures with values from -1 to 1, resized to `size`."""
    shape = (1, 3, 1, 1)
    mean, deviation = (sent(torch.tensor(values), images.device).view(shape) for values in (MEAN, DEVIATION))
    pictures = (images.float() * deviation + mean) * 2 - 1
    if pictures.shape[-1] != size:
        pictures = F.interpolate(pictures, size=(size, size), mode="bilinear", antialias=True, align_corners=False)
    return pictures.clamp(-1, 1)
