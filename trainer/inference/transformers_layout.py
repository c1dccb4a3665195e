"""The layout of `transformers.CLIPModel`: names, sizes and settings of towers that it can express.

Radford et al. 2021, https://arxiv.org/abs/2103.00020, in the names of https://huggingface.co/docs/transformers/model_doc/clip
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from open_clip.transformer import QuickGELU, ResidualAttentionBlock, TextTransformer, VisionTransformer
from PIL import Image
from torch import Tensor, nn

from trainer.errors import UserError
from trainer.images import Preprocessing


def clip_config(visual: nn.Module, text: nn.Module, *, end: int, scale: float) -> dict[str, Any]:
    """Return `config.json` of a `CLIPModel` with these towers.

    Args:
        visual: An image tower of open_clip.
        text: A text tower of open_clip.
        end: Id of its end token, the largest of a text; `transformers_models.LEGACY_END` where that is another.
        scale: Logarithm of the inverse temperature.

    Raises:
        UserError: The towers have what `CLIPModel` lacks.
    """
    _check(visual, text)
    assert isinstance(visual, VisionTransformer)
    assert isinstance(text, TextTransformer)
    vision = _sizes(visual.transformer) | {
        "model_type": "clip_vision_model",
        "image_size": int(visual.image_size[0]),
        "patch_size": int(visual.patch_size[0]),
        "num_channels": 3,
        "projection_dim": int(_projection(visual.proj).shape[0]),
    }
    text_config = _sizes(text.transformer) | {
        "model_type": "clip_text_model",
        "vocab_size": int(text.token_embedding.weight.shape[0]),  # a tokenizer may have fewer
        "max_position_embeddings": int(text.positional_embedding.shape[0]),
        "projection_dim": int(_projection(text.text_projection).shape[0]),
        "bos_token_id": 1,
        "pad_token_id": 0,
        "eos_token_id": end,
    }
    return {
        "architectures": ["CLIPModel"],
        "model_type": "clip",
        "projection_dim": vision["projection_dim"],
        "logit_scale_init_value": scale,
        "vision_config": vision,
        "text_config": text_config,
        "dtype": "float32",
    }


def image_processor(reads: Preprocessing) -> dict[str, Any]:
    """Return `preprocessor_config.json` of an image processor with these steps.

    Raises:
        UserError: transformers has no such steps.
    """
    if reads.resize_mode == "longest":
        raise UserError(
            "The image processor of CLIP in transformers does not fill a square. Use --format open_clip, which does."
        )
    square = {"height": reads.size, "width": reads.size}
    return {
        "image_processor_type": "CLIPImageProcessor",
        "processor_class": "CLIPProcessor",
        "do_resize": True,
        "size": square if reads.resize_mode == "squash" else {"shortest_edge": reads.resize_size or reads.size},
        "resample": int(Image.Resampling[reads.interpolation.upper()]),
        "do_center_crop": reads.resize_mode == "shortest",
        "crop_size": square,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(reads.mean),
        "image_std": list(reads.std),
        "do_convert_rgb": True,
    }


def clip_tensors(visual: nn.Module, text: nn.Module, scale: float) -> dict[str, Tensor]:
    """Return the weights of both towers by the names of `CLIPModel`, and the logarithm of the inverse temperature."""
    assert isinstance(visual, VisionTransformer)
    assert isinstance(text, TextTransformer)
    tensors = {
        "logit_scale": torch.tensor(scale),
        "vision_model.embeddings.class_embedding": visual.class_embedding,
        "vision_model.embeddings.patch_embedding.weight": visual.conv1.weight,
        "vision_model.embeddings.position_embedding.weight": visual.positional_embedding,
        "visual_projection.weight": _projection(visual.proj),
        "text_model.embeddings.token_embedding.weight": text.token_embedding.weight,
        "text_model.embeddings.position_embedding.weight": text.positional_embedding,
        "text_projection.weight": _projection(text.text_projection),
    }
    for name, norm in (
        ("vision_model.pre_layrnorm", visual.ln_pre),
        ("vision_model.post_layernorm", visual.ln_post),
        ("text_model.final_layer_norm", text.ln_final),
    ):
        tensors |= {f"{name}.{part}": value for part, value in norm.named_parameters()}
    for side, tower in (("vision", visual), ("text", text)):
        for layer, block in enumerate(tower.transformer.resblocks):
            tensors |= {f"{side}_model.encoder.layers.{layer}.{name}": value for name, value in _block(block)}
    return {name: value.detach().float().contiguous().clone() for name, value in tensors.items()}


def siglip_tensors(visual: nn.Module, text: nn.Module, scale: float, bias: float) -> dict[str, Tensor]:
    """Return the weights of towers of transformers by the names of `SiglipModel`, with the logits' scale and bias."""
    tensors = {**visual.state_dict(), **text.state_dict()}
    tensors |= {"logit_scale": torch.tensor([scale]), "logit_bias": torch.tensor([bias])}
    return {name: value.detach().contiguous().clone() for name, value in tensors.items()}


def _block(block: ResidualAttentionBlock) -> Iterator[tuple[str, Tensor]]:
    for part, value in (("weight", block.attn.in_proj_weight), ("bias", block.attn.in_proj_bias)):
        for name, some in zip("qkv", value.chunk(3), strict=True):
            yield f"self_attn.{name}_proj.{part}", some
    for name, layer in (
        ("self_attn.out_proj", block.attn.out_proj),
        ("layer_norm1", block.ln_1),
        ("layer_norm2", block.ln_2),
        ("mlp.fc1", block.mlp.c_fc),
        ("mlp.fc2", block.mlp.c_proj),
    ):
        yield from ((f"{name}.{part}", value) for part, value in layer.named_parameters())


def _sizes(transformer: Any) -> dict[str, Any]:
    first = transformer.resblocks[0]
    return {
        "hidden_size": int(transformer.width),
        "intermediate_size": int(first.mlp.c_fc.out_features),
        "num_hidden_layers": len(transformer.resblocks),
        "num_attention_heads": int(first.attn.num_heads),
        "hidden_act": "quick_gelu" if isinstance(first.mlp.gelu, QuickGELU) else "gelu",
        "layer_norm_eps": float(first.ln_1.eps),
        "attention_dropout": 0.0,
    }


def _projection(projection: Any) -> Tensor:
    """Return a projection as the weight of a linear layer, d x width."""
    weight: Tensor = projection.weight if isinstance(projection, nn.Linear) else projection.T
    return weight


def _check(visual: nn.Module, text: nn.Module) -> None:
    """Check that the towers have no layer that `CLIPModel` lacks.

    Raises:
        UserError: They have one.
    """
    lacking = _lacking_vision(visual) or _lacking_text(text)
    if lacking:
        raise UserError(
            f"CLIPModel of transformers has no {lacking}. Use --format open_clip or safetensors, which have."
        )


def _lacking_vision(tower: nn.Module) -> str:
    if type(tower) is not VisionTransformer:
        return f"image tower like {type(tower).__name__}, only vision transformers"
    if tower.attn_pool is not None or tower.pool_type != "tok" or tower.final_ln_after_pool:
        return "pooling but at the class token"
    if not isinstance(tower.ln_pre, nn.LayerNorm) or tower.proj is None:
        return "vision transformer without a first norm or a projection"
    return _lacking_blocks(tower.transformer)


def _lacking_text(tower: nn.Module) -> str:
    if type(tower) is not TextTransformer:
        return f"text tower like {type(tower).__name__}"
    if tower.pool_type != "argmax" or tower.cls_emb is not None or tower.attn_mask is None:
        return "pooling but at the end token of a causal transformer"
    if tower.text_projection is None or getattr(tower.text_projection, "bias", None) is not None:
        return "text tower without a projection, or with one that has a bias"
    return _lacking_blocks(tower.transformer)


def _lacking_blocks(transformer: Any) -> str:
    plain = all(
        type(block) is ResidualAttentionBlock
        and isinstance(block.ls_1, nn.Identity)
        and isinstance(block.ls_2, nn.Identity)
        for block in transformer.resblocks
    )
    return "" if plain else "blocks with layer scale or of other kinds"
