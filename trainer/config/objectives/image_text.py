"""Objectives of image-text pairs: both towers are trained, row k of one against row k of the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from trainer.config.fields import option
from trainer.config.objectives.base import ObjectiveBase, Towers


class ImageText(ObjectiveBase):
    """The base class of image-text objectives."""

    family: ClassVar[str] = "Images against captions"
    towers: ClassVar[Towers] = "both"


def _mask_duplicates() -> Any:
    return option(
        False,
        "Mask duplicates",
        "Leaves right answers out of the negatives: other captions of the same image, and the same caption on another "
        "image. The validation loss leaves out the same.",
        advanced=True,
    )


def _fixed_inv_tau(default: float) -> Any:
    return option(default, "1/tau", "Inverse temperature; fixed.", low=0.01, high=1000.0)


@dataclass(frozen=True, kw_only=True)
class Clip(ImageText):
    """CLIP: symmetric InfoNCE with a learned logit scale.

    Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021,
    https://arxiv.org/abs/2103.00020
    """

    kind: ClassVar[str] = "clip"
    label: ClassVar[str] = "CLIP"
    paper: ClassVar[str] = "https://arxiv.org/abs/2103.00020"

    inv_tau: float = option(1 / 0.07, "Initial 1/tau", "Inverse temperature at the first step.", low=0.01, high=100.0)
    learn_inv_tau: bool = option(True, "Learn 1/tau", "Let the optimizer move the temperature.")
    inv_tau_max: float = option(
        100.0, "Largest 1/tau", "Clamp of the learned inverse temperature.", low=1.0, high=1000.0, advanced=True
    )
    mask_duplicates: bool = _mask_duplicates()


@dataclass(frozen=True, kw_only=True)
class Cloob(ImageText):
    """CLOOB: modern Hopfield retrieval, then InfoLOOB both ways at a fixed temperature.

    Fuerst et al., CLOOB: Modern Hopfield Networks with InfoLOOB Outperform CLIP, 2022,
    https://arxiv.org/abs/2110.11316
    """

    kind: ClassVar[str] = "cloob"
    label: ClassVar[str] = "CLOOB"
    paper: ClassVar[str] = "https://arxiv.org/abs/2110.11316"

    inv_tau: float = option(
        30.0,
        "1/tau",
        "Inverse temperature of InfoLOOB; fixed, a learned one always falls to its clamp.",
        low=0.01,
        high=1000.0,
    )
    scale_hopfield: float = option(8.0, "Beta", "Inverse temperature of the Hopfield retrieval.", low=0.01, high=1000.0)
    retrieval_share: float = option(
        1.0,
        "Retrieval share",
        "Share of the loss that compares retrievals, as published; the rest compares images and captions directly. "
        "0.5 keeps small runs from settling in a few directions.",
        low=0.0,
        high=1.0,
    )
    residual: bool = option(
        False,
        "Add the embedding",
        "Compare the direction of embedding plus retrieval in place of the retrieval alone.",
        advanced=True,
    )
    mask_duplicates: bool = _mask_duplicates()


@dataclass(frozen=True, kw_only=True)
class HopfieldInfoNce(ImageText):
    """InfoNCE after Hopfield retrieval: CLOOB without InfoLOOB.

    Ablation of Fuerst et al., CLOOB, 2022, https://arxiv.org/abs/2110.11316
    """

    kind: ClassVar[str] = "hopfield_infonce"
    label: ClassVar[str] = "InfoNCE + Hopfield"
    paper: ClassVar[str] = "https://arxiv.org/abs/2110.11316"

    inv_tau: float = _fixed_inv_tau(30.0)
    scale_hopfield: float = option(8.0, "Beta", "Inverse temperature of the Hopfield retrieval.", low=0.01, high=1000.0)
    mask_duplicates: bool = _mask_duplicates()


@dataclass(frozen=True, kw_only=True)
class InfoLoobPair(ImageText):
    """InfoLOOB in both directions, without retrieval: CLOOB without its Hopfield memory.

    Ablation of Fuerst et al., CLOOB, 2022, https://arxiv.org/abs/2110.11316
    """

    kind: ClassVar[str] = "infoloob"
    label: ClassVar[str] = "InfoLOOB"
    paper: ClassVar[str] = "https://arxiv.org/abs/2110.11316"

    inv_tau: float = _fixed_inv_tau(30.0)
    mask_duplicates: bool = _mask_duplicates()


@dataclass(frozen=True, kw_only=True)
class ConVirt(ImageText):
    """ConVIRT: the weighted sum of both directions of InfoNCE.

    Its nonlinear projections are `model.projection = "mlp"`, its crops `optimizer.crop_scale = 0.6`.
    Zhang et al., Contrastive Learning of Medical Visual Representations from Paired Images and Text, 2020,
    https://arxiv.org/abs/2010.00747
    """

    kind: ClassVar[str] = "convirt"
    label: ClassVar[str] = "ConVIRT"
    paper: ClassVar[str] = "https://arxiv.org/abs/2010.00747"

    inv_tau: float = _fixed_inv_tau(10.0)
    image_weight: float = option(
        0.75, "Image weight", "Share of the image-to-text direction; the other has the rest.", low=0.0, high=1.0
    )
    sample_sentences: bool = option(
        False, "Sample sentences", "Of a caption with several sentences or phrases, one is drawn in every epoch."
    )
    flip: bool = option(
        False, "Mirror", "Mirror half of the images, as the paper; left and right become the same.", advanced=True
    )
    turn: float = option(
        0.0,
        "Rotation",
        "Largest rotation of an image, which is then also moved by up to a tenth and scaled by up to 5 %; the paper's "
        "is 20.",
        low=0.0,
        high=180.0,
        unit="°",
        advanced=True,
    )
    jitter: float = option(
        0.0,
        "Brightness and contrast",
        "By up to which share they change; the paper's is 0.4.",
        low=0.0,
        high=0.8,
        advanced=True,
    )
    blur: float = option(
        0.0, "Blurred images", "Share of the images that are blurred.", low=0.0, high=1.0, advanced=True
    )
    mask_duplicates: bool = _mask_duplicates()


@dataclass(frozen=True, kw_only=True)
class SigLip(ImageText):
    """SigLIP: binary classification of every pair of the batch, with a learned scale and bias.

    Zhai et al., Sigmoid Loss for Language Image Pre-Training, 2023, https://arxiv.org/abs/2303.15343
    """

    kind: ClassVar[str] = "siglip"
    label: ClassVar[str] = "SigLIP"
    paper: ClassVar[str] = "https://arxiv.org/abs/2303.15343"

    inv_tau: float = option(
        10.0, "Initial scale", "Factor on the cosine at the first step; later it is at least 1.", low=0.01, high=100.0
    )
    inv_tau_max: float = option(
        100.0, "Largest scale", "Clamp of the learned scale.", low=1.0, high=1000.0, advanced=True
    )
    bias_from_batch: bool = option(
        True, "Bias from batch", "Start with the bias -ln(B - 1), which suits a batch of B pairs of any size."
    )
    bias: float = option(
        -10.0,
        "Initial bias",
        "Used when it is not taken from the batch; the paper's -10 suits batches of 22,000.",
        low=-100.0,
        high=100.0,
        advanced=True,
    )
    mask_duplicates: bool = _mask_duplicates()


@dataclass(frozen=True, kw_only=True)
class DhnNce(ImageText):
    """DHN-NCE: InfoLOOB with larger weights for harder negatives.

    Koleilat et al., MedCLIP-SAM, 2024, https://arxiv.org/abs/2403.20253
    """

    kind: ClassVar[str] = "dhn_nce"
    label: ClassVar[str] = "DHN-NCE"
    paper: ClassVar[str] = "https://arxiv.org/abs/2403.20253"

    inv_tau: float = _fixed_inv_tau(1 / 0.07)
    beta_image: float = option(
        0.15, "Image hardness", "Of image-to-text negatives; 0 weighs all equally.", low=0.0, high=10.0
    )
    beta_text: float = option(
        0.15, "Text hardness", "Of text-to-image negatives; 0 weighs all equally.", low=0.0, high=10.0
    )
    detach_weights: bool = option(
        False,
        "Constant weights",
        "Do not propagate gradients through the weights; easy negatives are then never attracted.",
    )
    mask_duplicates: bool = _mask_duplicates()
