"""The towers that a run trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainer.config.fields import ConfigError, option
from trainer.config.objectives.base import ObjectiveBase, nearest_divisor


class ModelKind:
    """What is true of a kind of towers."""

    kind: ClassVar[str]  # In configurations.
    label: ClassVar[str]  # For people.
    # They are those of another library, with an architecture and a tokenizer in files.
    is_published: ClassVar[bool] = False
    is_missing: ClassVar[bool] = False  # There are none: nothing can be embedded.


@dataclass(frozen=True, kw_only=True)
class TinyTowers(ModelKind):
    """Two small open_clip towers for CPUs: a ModifiedResNet or ViT for images, a transformer for texts."""

    kind: ClassVar[str] = "tiny"
    label: ClassVar[str] = "Tiny towers"

    image_tower: Literal["resnet", "vit"] = option("resnet", "Image tower", "Convolutional or transformer.")
    image_size: int = option(
        64, "Image size", "Side of the square the image is resized to.", low=16, high=512, unit="px"
    )
    image_width: int = option(16, "Image width", "Channels of the stem (ResNet) or of a token (ViT).", low=8, high=1024)
    image_layers: int = option(1, "Image layers", "Blocks per stage (ResNet) or in total (ViT).", low=1, high=24)
    patch_size: int = option(
        8, "Patch size", "Side of a ViT patch; unused by the ResNet.", low=2, high=64, unit="px", advanced=True
    )
    text_width: int = option(128, "Text width", "Channels of a text token.", low=16, high=1024)
    text_layers: int = option(2, "Text layers", "Transformer blocks.", low=1, high=24)
    text_heads: int = option(4, "Text heads", "Attention heads; divides the text width.", low=1, high=32, advanced=True)
    context_length: int = option(24, "Context length", "Longest caption.", low=4, high=512, unit="tokens")
    vocabulary: int = option(2_048, "Vocabulary", "Most tokens the trained tokenizer may have.", low=300, high=65_536)
    embed_dim: int = option(128, "Embedding dimension", "Width of the shared space.", low=2, high=4096)
    projection: Literal["linear", "mlp"] = option(
        "linear",
        "Projection",
        "Into the shared space, of both towers. linear: one layer, as CLIP. mlp: a layer, ReLU and another layer, as "
        "ConVIRT.",
        advanced=True,
    )
    tokenizer: str = option(
        "",
        "Tokenizer",
        "Empty: trained on the captions. clip: that of CLIP. Else a tokenizer of the Hugging Face hub, or a "
        "tokenizer.json.",
        advanced=True,
    )

    def check(self, objective: ObjectiveBase) -> None:
        """Check that the towers can be built, as far as their fields determine it, and suit the objective.

        Raises:
            ConfigError: Names the field, the cause, and what to choose instead.
        """
        if self.text_width % self.text_heads:
            raise ConfigError(
                f"model.text_heads {self.text_heads} does not divide model.text_width {self.text_width}: "
                "choose a divisor, 4 fits most widths.",
                field="model.text_heads",
                better=nearest_divisor(self.text_width, self.text_heads),
            )
        if self.image_tower == "vit" and self.image_size % self.patch_size:
            raise ConfigError(
                f"model.patch_size {self.patch_size} does not divide model.image_size {self.image_size}.",
                field="model.patch_size",
                better=nearest_divisor(self.image_size, self.patch_size),
            )
        if self.image_tower == "resnet" and self.image_size % 32:
            raise ConfigError(
                f"model.image_size {self.image_size} must be a multiple of 32 for the ResNet tower.",
                field="model.image_size",
                better=max(32, round(self.image_size / 32) * 32),
            )
        if self.projection == "mlp" and not (objective.compares_pairs or objective.source):
            raise ConfigError(
                f"model.projection mlp leads into the shared space of images and texts, which {objective.label} lacks: "
                "choose linear.",
                field="model.projection",
                better="linear",
            )


@dataclass(frozen=True, kw_only=True)
class OpenClip(ModelKind):
    """A full-size model: an open_clip architecture by name, or a published model to continue from."""

    kind: ClassVar[str] = "open_clip"
    label: ClassVar[str] = "open_clip or pretrained"
    is_published: ClassVar[bool] = True

    name: str = option(
        "RN50",
        "Model",
        "An architecture of open_clip (RN50, RN101, RN50x4, ViT-B-32, ...), local-dir:FOLDER, hf-hub:OWNER/NAME, the "
        "folder of an open_clip run, or a .safetensors or .pt file.",
    )
    pretrained: str = option(
        "",
        "Pretrained weights",
        "Of an architecture by name: a tag of open_clip (laion2b_s34b_b79k) or a file; empty: random weights.",
    )
    freeze: Literal["none", "image", "text", "all but projections"] = option(
        "none", "Freeze", "What training does not change; batch norms of a frozen tower stay as they are, too."
    )
    image_size: int = option(
        0,
        "Image size",
        "Side of the images; 0: that of the model. Positions of a transformer are interpolated.",
        low=0,
        high=1024,
        unit="px",
        advanced=True,
    )
    tokenizer: str = option(
        "",
        "Tokenizer",
        "Empty: the model's own. Else clip, a tokenizer of the Hugging Face hub, or a tokenizer.json.",
        advanced=True,
    )
    activation: Literal["auto", "gelu", "quick_gelu"] = option(
        "auto",
        "Activation",
        "Of weights whose files do not tell it, such as a run that began with OpenAI's; auto: what is told, else GELU.",
        advanced=True,
    )
    image_heads: int = option(
        0,
        "Image heads",
        "Attention heads of the image transformer; 0: what the model's files tell, else its width / 64.",
        low=0,
        high=256,
        advanced=True,
    )
    text_heads: int = option(
        0,
        "Text heads",
        "Attention heads of the text transformer; 0: what the model's files tell, else its width / 64.",
        low=0,
        high=256,
        advanced=True,
    )

    def check(self, objective: ObjectiveBase) -> None:
        """Check that a model is named, and that the objective trains something of it.

        Raises:
            ConfigError: Names the field, the cause, and what to choose instead.
        """
        if not self.name.strip():
            raise ConfigError(
                "model.name is empty: name an architecture such as RN50, or a folder or file of weights.",
                field="model.name",
            )
        if objective.towers == "words":
            raise ConfigError(
                f"model open_clip has no use in {objective.label}, which learns from captions: choose tiny.",
                field="model",
            )
        if self.freeze == "image" and objective.towers == "image":
            raise ConfigError(
                f"model.freeze image leaves {objective.label} nothing to train: choose none.", field="model.freeze"
            )


Model = TinyTowers | OpenClip
