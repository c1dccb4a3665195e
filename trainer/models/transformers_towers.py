"""The towers of SigLIP, built by transformers itself: open_clip's have them in published sizes alone.

Zhai et al., Sigmoid Loss for Language Image Pre-Training, 2023, https://arxiv.org/abs/2303.15343; in the classes of
https://huggingface.co/docs/transformers/model_doc/siglip and siglip2
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class TransformersImageTower(nn.Module):
    """The image tower of a `SiglipModel` or `Siglip2Model`, for squares."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        sizes = _configuration(settings).vision_config
        if settings["model_type"] == "siglip2":
            from transformers import Siglip2VisionModel

            self.vision_model: nn.Module = Siglip2VisionModel(sizes)
            self.patch = int(sizes.patch_size)
        else:
            from transformers import SiglipVisionModel

            self.vision_model, self.patch = SiglipVisionModel(sizes), 0

    def forward(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Return the pooled vector of each image."""
        if not self.patch:
            return self.vision_model(pixel_values=images).pooler_output
        n, channels, side = len(images), images.shape[1], images.shape[2] // self.patch
        # As Siglip2ImageProcessor cuts a picture: rows of patches, and in a patch rows, columns, channels.
        cells = images.reshape(n, channels, side, self.patch, side, self.patch).permute(0, 2, 4, 3, 5, 1)
        return self.vision_model(
            pixel_values=cells.reshape(n, side * side, -1),
            pixel_attention_mask=torch.ones(n, side * side, dtype=torch.int32, device=images.device),
            spatial_shapes=torch.full((n, 2), side, dtype=torch.int64, device=images.device),
        ).pooler_output


class TransformersTextTower(nn.Module):
    """The text tower of a `SiglipModel` or `Siglip2Model`, which reads padding as it reads words."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        sizes = _configuration(settings).text_config
        if settings["model_type"] == "siglip2":
            from transformers import Siglip2TextModel

            self.text_model: nn.Module = Siglip2TextModel(sizes)
        else:
            from transformers import SiglipTextModel

            self.text_model = SiglipTextModel(sizes)

    def forward(self, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        """Return the vector of each text."""
        return self.text_model(input_ids=tokens).pooler_output


def filled_in(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the library's own values for what a `config.json` leaves out."""
    made = _configuration(settings)
    parts = {name: settings.get(name, {}) | getattr(made, name).to_dict() for name in ("vision_config", "text_config")}
    return settings | parts


def _configuration(settings: dict[str, Any]) -> Any:
    from transformers import Siglip2Config, SiglipConfig

    made = Siglip2Config if settings["model_type"] == "siglip2" else SiglipConfig
    return made(text_config=dict(settings["text_config"]), vision_config=dict(settings["vision_config"]))
