"""Which towers a run trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from trainer.config.fields import option


@dataclass(frozen=True, kw_only=True)
class TinyTowers:
    """Two small open_clip towers for CPUs: a ModifiedResNet or ViT for images, a transformer for texts."""

    kind: ClassVar[str] = "tiny"
    label: ClassVar[str] = "Tiny towers"

    image_tower: Literal["resnet", "vit"] = option("resnet", "Image tower", "Convolutional or transformer.")
    image_size: int = option(
        64, "Image size", "Side of the square the image is resized to.", low=16, high=512, unit="px"
    )
    image_width: int = option(16, "Image width", "Channels of the stem (ResNet) or of a token (ViT).", low=8, high=1024)
    image_layers: int = option(1, "Image layers", "Blocks a stage (ResNet) or in all (ViT).", low=1, high=24)
    patch_size: int = option(
        8, "Patch size", "Side of a ViT patch; unused by the ResNet.", low=2, high=64, unit="px", advanced=True
    )
    text_width: int = option(128, "Text width", "Channels of a text token.", low=16, high=1024)
    text_layers: int = option(2, "Text layers", "Transformer blocks.", low=1, high=24)
    text_heads: int = option(4, "Text heads", "Attention heads; divides the text width.", low=1, high=32, advanced=True)
    context_length: int = option(24, "Context length", "Longest caption.", low=4, high=512, unit="tokens")
    vocabulary: int = option(2_048, "Vocabulary", "Most tokens the trained tokenizer may have.", low=300, high=65_536)
    embed_dim: int = option(128, "Embedding dimension", "Width of the shared space.", low=2, high=4096)


Model = TinyTowers
