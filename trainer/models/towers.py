"""Two towers with a shared space, built from open_clip's own classes."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from open_clip.constants import OPENAI_DATASET_MEAN, OPENAI_DATASET_STD
from open_clip.modified_resnet import ModifiedResNet
from open_clip.transformer import TextTransformer, VisionTransformer
from torch import Tensor, nn

from trainer import config
from trainer.config.extension import PluginTowers
from trainer.images import Preprocessing
from trainer.models import published
from trainer.models.blueprint import Blueprint, ModelError
from trainer.models.pooled import at_end, pool_by_one_query, reads_end_alone
from trainer.models.word_vectors import WordVectors

Which = Literal["both", "image", "words", "source"]
_TWO: Final = ("both", "source")
Architecture = config.TinyTowers | Blueprint
"""What two towers are built from; all of them tell `image_size`, `context_length` and `embed_dim`."""


class TwoTowers(nn.Module):
    """An image tower and a text tower with comparable unit embeddings; objectives may train one alone.

    Attributes:
        visual: Normalized images (n 3 s s) to vectors (n d); None where only captions are learned from.
        text: Token rows (n length) to vectors (n d); None where only images are learned from.
        colors: Turns pixels normalized as CLIP's into the model's own scale; None where it is the same.
        image_head: What follows the image tower's last layer; None: nothing.
        text_head: What follows the text tower's last layer; None: nothing.
    """

    def __init__(
        self,
        visual: nn.Module | None,
        text: nn.Module | None,
        colors: nn.Module | None = None,
        *,
        heads: tuple[nn.Module, nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.visual = visual
        self.text = text
        self.colors = colors
        self.image_head: nn.Module | None
        self.text_head: nn.Module | None
        self.image_head, self.text_head = heads or (None, None)
        self._frozen: list[nn.Module] = []
        self._holds_norms = False

    def freeze(self, what: published.Freeze) -> None:
        """Freeze towers from now on, including their batch norms."""
        self._frozen = published.froze(self.visual, self.text, what)
        self.train(self.training)

    def freeze_lowest(self, *, image: int, text: int) -> None:
        """Freeze the lowest blocks of each tower and what is below them from now on, including their batch norms."""
        for tower, blocks in ((self.visual, image), (self.text, text)):
            if tower is not None and blocks:
                self._frozen += published.froze_lowest(tower, blocks)
        self.train(self.training)

    def freeze_towers(self, *, image: bool, text: bool) -> None:
        """Freeze whole towers from now on, including their batch norms."""
        for tower, frozen in ((self.visual, image), (self.text, text)):
            if tower is not None and frozen:
                self._frozen.append(tower.requires_grad_(False))
        self.train(self.training)

    def freeze_all(self) -> None:
        """Freeze both towers from now on: nothing of them learns, and batch norms stay as they are."""
        self._frozen = [tower for tower in (self.visual, self.text) if tower is not None]
        self.requires_grad_(False)
        self.train(self.training)

    def hold_norms(self) -> None:
        """Keep the running statistics of all batch norms from now on; their weights and biases still learn."""
        self._holds_norms = True
        self.train(self.training)

    def train(self, mode: bool = True) -> TwoTowers:
        """Set training mode, except for frozen towers and held batch norms."""
        super().train(mode)
        for module in (*self._frozen, *(filter(_is_batch_norm, self.modules()) if self._holds_norms else ())):
            module.eval()
        return self

    def encode_image(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Return unit embeddings, in float32 regardless of the towers' precision unless that is float64.

        Raises:
            ModelError: There is no image tower.
        """
        return _unit(self.features(images))

    def features(self, images: Float[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        """Return unnormalized embeddings by the image tower.

        Raises:
            ModelError: There is no image tower.
        """
        if self.visual is None:
            raise ModelError(
                "This model has no image tower: its objective learns from captions alone. "
                "Choose a run that was trained on images."
            )
        pooled = _pooled(self.visual(images if self.colors is None else self.colors(images)))
        return pooled if self.image_head is None else self.image_head(pooled)

    def encode_text(self, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        """Return unit embeddings, in float32 regardless of the towers' precision unless that is float64.

        Raises:
            ModelError: There is no text tower.
        """
        return _unit(self.text_features(tokens))

    def text_features(self, tokens: Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        """Return unnormalized embeddings by the text tower.

        Raises:
            ModelError: There is no text tower.
        """
        if self.text is None:
            raise ModelError(
                "This model has no text tower: its objective learns from images alone. "
                "Choose a run of CLIP, CLOOB or another objective of image-text pairs."
            )
        pooled = at_end(self.text, tokens) if reads_end_alone(self.text) else _pooled(self.text(tokens))
        return pooled if self.text_head is None else self.text_head(pooled)


def build(model: Architecture, *, vocabulary: int, towers: Which = "both") -> TwoTowers:
    """Return newly initialized towers; torch's generator determines the weights.

    Args:
        vocabulary: Ids of the tokenizer.
        towers: `both`, or `source` for those of another run; `image`: no text tower; `words`: no image tower, and a
            vector a token for texts.

    Raises:
        ModelError: No such model can be built here.
    """
    if isinstance(model, Blueprint):
        text = published.text_tower(model) if towers in _TWO else None
        return TwoTowers(published.image_tower(model), text, published.colors(model))
    if towers == "words":
        return TwoTowers(None, WordVectors(vocabulary, model.embed_dim))
    built = model.build_image() if isinstance(model, PluginTowers) else None
    visual = built if built is not None else _image_tower(model)
    # Published towers stay as they are: in single precision the other order of sums moves an embedding by 1e-5.
    if built is None:
        pool_by_one_query(visual)
    if towers not in _TWO:
        return TwoTowers(visual, None)
    text = _text_of(model, vocabulary)
    return TwoTowers(visual, text, heads=(_head(model), _head(model)) if model.projection == "mlp" else None)


def _head(model: config.TinyTowers) -> nn.Module:
    """Return what makes a tower's last layer ConVIRT's projection: W2 ReLU(W1 h), W1 being that layer.

    Zhang et al., Contrastive Learning of Medical Visual Representations from Paired Images and Text, 2020,
    https://arxiv.org/abs/2010.00747, equation 1
    """
    return nn.Sequential(nn.ReLU(), nn.Linear(model.embed_dim, model.embed_dim))


def _text_of(model: config.TinyTowers, vocabulary: int) -> nn.Module:
    built = model.build_text(vocabulary) if isinstance(model, PluginTowers) else None
    return built if built is not None else _text_tower(model, vocabulary=vocabulary)


def preprocessing_of(model: Architecture) -> Preprocessing | None:
    """Return the preprocessing of a data set: a published model's; None for our own towers' quick center square."""
    return model.preprocessing if isinstance(model, Blueprint) else None


def file_preprocessing_of(model: Architecture) -> Preprocessing:
    """Return the preprocessing of single pictures, which is also the one that an exported model tells its library."""
    if not isinstance(model, Blueprint):
        return Preprocessing(model.image_size, "shortest", "bicubic", OPENAI_DATASET_MEAN, OPENAI_DATASET_STD)
    chosen = replace(model, resize_mode=model.resize_mode or "shortest").preprocessing
    assert chosen is not None
    return chosen


def open_clip_sizes(sizes: Architecture, vocabulary: int) -> dict[str, Any]:
    """Return the `model_cfg` from which open_clip builds the same towers."""
    if isinstance(sizes, Blueprint):
        config = copy.deepcopy(sizes.config) | {"custom_text": True}
        config["text_cfg"].pop(published.HF_SIZES, None)
        return config
    width, heads = (
        (sizes.image_width, _heads(sizes.image_width, channels=32))
        if sizes.image_tower == "vit"
        else (32 * sizes.image_width, _heads(32 * sizes.image_width, channels=64))
    )
    vision = {"image_size": sizes.image_size, "width": sizes.image_width, "head_width": width // heads}
    layers: Any = sizes.image_layers if sizes.image_tower == "vit" else [sizes.image_layers] * 4
    text = {
        "context_length": sizes.context_length,
        "vocab_size": vocabulary,
        "width": sizes.text_width,
        "heads": sizes.text_heads,
        "layers": sizes.text_layers,
        "pool_type": "argmax",
    }
    patches = {"patch_size": sizes.patch_size} if sizes.image_tower == "vit" else {}
    return {
        "embed_dim": sizes.embed_dim,
        "custom_text": True,
        "vision_cfg": vision | {"layers": layers} | patches,
        "text_cfg": text,
    }


def _pooled(answer: Tensor | tuple[Tensor, ...]) -> Float[Tensor, "n d"]:
    """Return the vectors of a tower that may also return tokens (CoCa)."""
    return answer[0] if isinstance(answer, tuple) else answer


def _unit(rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    return F.normalize(rows if rows.dtype == torch.float64 else rows.float(), dim=1)


def has_batch_norm(module: nn.Module) -> bool:
    """Return whether, in training, a row's embedding depends on other rows of the batch."""
    return any(map(_is_batch_norm, module.modules()))


def _is_batch_norm(module: nn.Module) -> bool:
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


def _image_tower(model: config.TinyTowers) -> nn.Module:
    if model.image_tower == "vit":
        return VisionTransformer(
            image_size=model.image_size,
            patch_size=model.patch_size,
            width=model.image_width,
            layers=model.image_layers,
            heads=_heads(model.image_width, channels=32),
            mlp_ratio=4.0,
            output_dim=model.embed_dim,
        )
    return ModifiedResNet(
        layers=[model.image_layers] * 4,
        output_dim=model.embed_dim,
        heads=_heads(32 * model.image_width, channels=64),
        image_size=model.image_size,
        width=model.image_width,
    )


def _text_tower(model: config.TinyTowers, *, vocabulary: int) -> nn.Module:
    # pool_type "argmax" reads the answer at the largest token id, which our tokenizer gives to the end token.
    return TextTransformer(
        context_length=model.context_length,
        vocab_size=vocabulary,
        width=model.text_width,
        heads=model.text_heads,
        layers=model.text_layers,
        output_dim=model.embed_dim,
        pool_type="argmax",
    )


def _heads(width: int, *, channels: int) -> int:
    """Return the number of heads of about `channels` that divides the width."""
    return next(heads for heads in range(max(1, width // channels), 0, -1) if width % heads == 0)
