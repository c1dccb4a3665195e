"""The blueprint of a published model: its sizes as JSON, so that a run needs no other file."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD

from trainer.errors import UserError
from trainer.images.preprocessing import INTERPOLATIONS, RESIZE_MODES, Interpolation, Preprocessing, ResizeMode

Layout = Literal["open_clip", "cloob_vit", "transformers"]
Color = tuple[float, float, float]
_PARTS: Final[dict[str, tuple[str, str]]] = {
    "open_clip": ("vision_cfg", "text_cfg"),
    "cloob_vit": ("image_encoder", "text_encoder"),
    "transformers": ("vision_config", "text_config"),
}
"""Names of the sizes of the image tower and of the text tower, by layout."""


class ModelError(UserError):
    """Something a model does not support; the message says why and what to choose instead."""


@dataclass(frozen=True)
class Blueprint:
    """The towers of a published model, or of one with the same architecture."""

    # Whose classes it is built from: `open_clip`, `cloob_vit` for the CLOOB of crowsonkb and EleutherAI, or
    # `transformers` for SigLIP.
    layout: Layout
    # Sizes in the layout's own words: open_clip's `model_cfg`; `d_embed`, `image_encoder`, `text_encoder`;
    # `config.json` of transformers.
    config: dict[str, Any]
    mean: Color = OPENAI_DATASET_MEAN  # Of each color channel of the images it was trained on; pixels go from 0 to 1.
    deviation: Color = OPENAI_DATASET_STD  # Likewise.
    # How its library fits a picture into the square, as in `Preprocessing`; None in the runs of older versions,
    # whose pictures were cropped like those for towers of our own, and go on so.
    resize_mode: ResizeMode | None = None
    interpolation: Interpolation = "bicubic"  # Likewise.
    fill_color: int = 0  # Likewise.
    resize_size: int | None = None  # Likewise.

    @property
    def preprocessing(self) -> Preprocessing | None:
        """The model's image preprocessing; None if unknown."""
        if self.resize_mode is None:
            return None
        return Preprocessing(
            self.image_size,
            self.resize_mode,
            self.interpolation,
            self.mean,
            self.deviation,
            self.fill_color,
            self.resize_size,
        )

    @property
    def image_size(self) -> int:
        """Side of the input images, in pixels."""
        size = self._image.get("image_size", 224)
        if self.layout == "transformers" and "num_patches" in self._image:  # Siglip2Model tells no side
            size = self._image["patch_size"] * math.isqrt(self._image["num_patches"])
        return int(size[0] if isinstance(size, list | tuple) else size)

    @property
    def context_length(self) -> int:
        """Maximum number of tokens in a text."""
        names = {"open_clip": "context_length", "cloob_vit": "text_size", "transformers": "max_position_embeddings"}
        return int(self.text.get(names[self.layout], 77))

    @property
    def vocabulary(self) -> int:
        """Number of ids of the text tower."""
        return int((self.text.get("hf_config") or self.text).get("vocab_size", 49_408))

    @property
    def embed_dim(self) -> int:
        """Dimension of the shared space."""
        if self.layout == "transformers":
            return int(self._image["hidden_size"])
        return int(self.config["embed_dim" if self.layout == "open_clip" else "d_embed"])

    @property
    def text(self) -> dict[str, Any]:
        """Sizes of the text tower."""
        return self.config[_PARTS[self.layout][1]]

    @property
    def _image(self) -> dict[str, Any]:
        return self.config[_PARTS[self.layout][0]]

    def at_size(self, image_size: int) -> Blueprint:
        """Return the same model for another image size."""
        scaled = None if self.resize_size is None else round(self.resize_size * image_size / self.image_size)
        config = self.config | {_PARTS[self.layout][0]: self._image | {"image_size": image_size}}
        return replace(self, config=config, resize_size=scaled)

    def with_vocabulary(self, size: int) -> Blueprint:
        """Return the same model for another tokenizer."""
        key = _PARTS[self.layout][1]
        hub_sizes = self.text.get("hf_config")
        more = {"vocab_size": size} if hub_sizes is None else {"hf_config": hub_sizes | {"vocab_size": size}}
        return replace(self, config=self.config | {key: self.text | more})

    def to_json(self) -> str:
        """Return everything that `from_json` needs."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Blueprint:
        """Return the blueprint saved by `to_json`.

        Raises:
            ModelError: The text is none.
        """
        try:
            values = json.loads(text)
            blueprint = cls(
                values["layout"],
                values["config"],
                tuple(values["mean"]),
                tuple(values["deviation"]),
                values.get("resize_mode"),
                values.get("interpolation", "bicubic"),
                int(values.get("fill_color", 0)),
                values.get("resize_size"),
            )
            if (
                blueprint.layout not in _PARTS
                or blueprint.resize_mode not in (None, *RESIZE_MODES)
                or blueprint.interpolation not in INTERPOLATIONS
            ):
                raise ValueError(f"{blueprint.resize_mode} {blueprint.interpolation}")
            _ = blueprint.embed_dim, blueprint.image_size, blueprint.context_length
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ModelError(f"The sizes of the model cannot be read ({error!r}). Open the model again.") from error
        return blueprint
