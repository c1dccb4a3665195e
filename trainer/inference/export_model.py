"""Write a run's model as files that other libraries open: open_clip, transformers, safetensors, ONNX, PEFT."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from open_clip.modified_resnet import AttentionPool2d
from safetensors.torch import save_file
from torch import Tensor, nn

from trainer import config, methods
from trainer.checkpoints import checkpoint
from trainer.checkpoints.merged_weights import DOWN, SCALE, UP, low_rank_matrices
from trainer.config.extension import PluginTowers
from trainer.data.tokenizer import PADDING, START, Tokenizer
from trainer.data.tokenizers import AnyTokenizer, ClipTokenizer, HubTokenizer
from trainer.errors import UserError
from trainer.inference.open_model import OpenModel, open_run
from trainer.inference.transformers_layout import clip_config, clip_tensors, image_processor, siglip_tensors
from trainer.models import file_preprocessing_of
from trainer.models.blueprint import Blueprint
from trainer.models.lora import Adapter
from trainer.models.pooled import OneQueryPool
from trainer.models.towers import open_clip_sizes
from trainer.pretrained import read_architecture
from trainer.pretrained.peft_layout import adapter_files
from trainer.pretrained.transformers_models import LEGACY_END
from trainer.store import Workspace
from trainer.store.files import told_if_unwritable, write_atomically

Format = Literal["open_clip", "hf", "safetensors", "onnx", "peft"]
_SPECIAL: Final = ("<|contrastive-pad|>", "<|contrastive-start|>", "<|contrastive-end|>")
"""Names of padding, start and end in a `tokenizer.json`: no caption spells them."""
_OPSET: Final = 18


@dataclass(frozen=True)
class ExportedModel:
    """Where a model was written, the files there, and the step it is of."""

    folder: Path
    files: tuple[str, ...]
    step: int


def export_model(
    workspace: Workspace, run_id: int, folder: Path, form: Format, *, step: int | None = None
) -> ExportedModel:
    """Write the model of a run to a new folder.

    Args:
        folder: Must not exist yet.
        form: `open_clip`: `open_clip.create_model_from_pretrained("local-dir:FOLDER")` opens it, and its tokenizer by
            `get_tokenizer`. `hf`: `transformers.CLIPModel.from_pretrained(FOLDER)` opens vision transformers with a
            causal text tower, `AutoProcessor` their tokenizer and preprocessing. `safetensors`: weights and sizes by
            the names of this project. `onnx`: `image.onnx` and `text.onnx` from normalized pixels and token rows to
            unit embeddings. `peft`: the LoRA adapter of a run alone, which `peft.PeftModel.from_pretrained` puts on the
            open_clip model that it was trained from. The others get LoRA merged.
        step: Of the checkpoint; None: the newest.

    Raises:
        UserError: The folder exists or cannot be written, the run has not both towers, or a library is missing.
        UserError: transformers has no such towers.
        CheckpointError: There is no such checkpoint.
    """
    if os.path.lexists(folder):  # a link, too, whether it leads anywhere or not
        raise UserError(f"{folder} exists already. Name a new folder: --out FOLDER.")
    opened = open_run(workspace, run_id, step, on="cpu")
    row = workspace.runs.get(run_id)
    chosen = workspace.runs.config_of(row.id)
    sizes = read_architecture(chosen.model, row.folder)
    if isinstance(sizes, PluginTowers):
        raise UserError("Towers of a plug-in are modules that no other library has. Export their snapshots.")
    write = {
        "open_clip": _write_open_clip,
        "hf": _write_transformers,
        "safetensors": _write_safetensors,
        "onnx": _write_onnx,
        "peft": _write_peft,
    }[form]
    source = _Source(opened, chosen, sizes, *_scale_and_bias(row.folder, chosen, opened.step), row.folder)

    def fill(draft: Path) -> None:
        draft.mkdir()
        write(draft, source)

    with told_if_unwritable(folder, "Name another folder: --out FOLDER."):
        folder.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder, fill)
    return ExportedModel(folder, tuple(sorted(file.name for file in folder.iterdir())), opened.step)


@dataclass(frozen=True)
class _Source:
    opened: OpenModel
    run: config.Run
    sizes: config.TinyTowers | Blueprint
    scale: float
    bias: float | None
    folder: Path


def _scale_and_bias(folder: Path, run: config.Run, step: int) -> tuple[float, float | None]:
    """Return the inverse temperature at a step, 1 for an objective without one; and the bias, if it has one."""
    if not run.objective.compares_pairs:
        return 1.0, None
    method = methods.build(run.objective)
    loaded = checkpoint.load(folder / "checkpoints" / f"step_{step:06d}", training=False)
    checkpoint.load_weights(loaded, {"method": method})
    return float(method.inv_tau or 1.0), method.logit_bias


def _both(source: _Source, form: str) -> tuple[nn.Module, nn.Module]:
    """Return copies of both towers, with attention pooling as open_clip's own."""
    model = source.opened.model
    if model.visual is None or model.text is None:
        raise UserError(
            f"A model of {form} has an image tower and a text tower; {source.run.name} has one. --format safetensors "
            "writes it."
        )
    visual, text = copy.deepcopy(model.visual), copy.deepcopy(model.text)
    for module in visual.modules():
        if type(module) is OneQueryPool:
            module.__class__ = AttentionPool2d
    if model.image_head is None or model.text_head is None:
        return visual, text
    if form != "ONNX":
        raise UserError(
            f"{source.run.name} has projections of two layers, which {form} lacks. Use --format onnx or safetensors."
        )
    return nn.Sequential(visual, copy.deepcopy(model.image_head)), nn.Sequential(text, copy.deepcopy(model.text_head))


def _write_open_clip(draft: Path, source: _Source) -> None:
    visual, text = _both(source, "open_clip")
    if isinstance(source.sizes, Blueprint) and source.sizes.layout != "open_clip":
        raise UserError(
            f"{source.run.name} has towers of {source.sizes.layout}, which open_clip lacks. Use --format safetensors."
        )
    if isinstance(source.sizes, Blueprint) and source.sizes.resize_size is not None:
        raise UserError(
            f"{source.run.name} resizes pictures to {source.sizes.resize_size} pixels before it cuts out "
            f"{source.sizes.image_size}, which open_clip's settings cannot say. Use --format hf or safetensors."
        )
    sizes = open_clip_sizes(source.sizes, source.opened.tokenizer.size)
    if _write_tokenizer(draft, source.opened.tokenizer):
        # Of a local folder open_clip takes the files that lie there.
        sizes["text_cfg"]["hf_tokenizer_name"] = "tokenizer.json"
    tensors = {f"visual.{name}": value for name, value in visual.state_dict().items()}
    tensors |= {f"text.{name}": value for name, value in text.state_dict().items()}
    tensors["logit_scale"] = torch.tensor(math.log(source.scale))
    if source.bias is not None:
        tensors["logit_bias"], sizes["init_logit_bias"] = torch.tensor(source.bias), source.bias
    save_file({name: value.contiguous() for name, value in tensors.items()}, draft / "open_clip_model.safetensors")
    document = {"model_cfg": sizes, "preprocess_cfg": _pixels(source.sizes)}
    (draft / "open_clip_config.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def _pixels(sizes: config.TinyTowers | Blueprint) -> dict[str, Any]:
    """Return the preprocessing of single pictures in the words of open_clip, but for their size."""
    preprocessing = file_preprocessing_of(sizes).to_json()
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in preprocessing.items()
        if name != "size" and value is not None
    }


def _write_tokenizer(draft: Path, tokenizer: AnyTokenizer) -> bool:
    """Write a tokenizer that transformers opens; False for CLIP's own, which open_clip has."""
    if isinstance(tokenizer, Tokenizer):
        pairs = _shifted(json.loads(tokenizer.to_json()), tokenizer.eot)
    elif isinstance(tokenizer, HubTokenizer):
        pairs = json.loads(json.loads(tokenizer.to_json())["pairs"])
    else:
        return False
    (draft / "tokenizer.json").write_text(json.dumps(pairs, ensure_ascii=False), encoding="utf-8")
    special = _SPECIAL if isinstance(tokenizer, Tokenizer) else ()
    named = dict(zip(("pad_token", "bos_token", "eos_token"), special))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", **named}
    (draft / "tokenizer_config.json").write_text(json.dumps(settings, indent=1), encoding="utf-8")
    return True


def _shifted(pairs: dict[str, Any], end: int) -> dict[str, Any]:
    """Return our byte pairs as a `tokenizer.json` with padding, start and end, which are outside of them here."""
    pairs["model"]["vocab"] = {token: number + 2 for token, number in pairs["model"]["vocab"].items()}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    ids = dict(zip(_SPECIAL, (PADDING, START, end)))
    # Added tokens that the vocabulary lacks would be numbered anew when they are read.
    pairs["model"]["vocab"] |= ids
    pairs["added_tokens"] = [{"id": number, "content": name, **flags} for name, number in ids.items()]
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name in _SPECIAL[1:])
    pairs["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [first, {"Sequence": {"id": "A", "type_id": 0}}, last],
        "pair": [first, {"Sequence": {"id": "A", "type_id": 0}}, last, {"Sequence": {"id": "B", "type_id": 1}}, last],
        "special_tokens": {
            name: {"id": name, "ids": [number], "tokens": [name]} for name, number in ids.items() if number
        },
    }
    return pairs


def _write_transformers(draft: Path, source: _Source) -> None:
    processor = image_processor(source.opened.file_preprocessing)
    visual, text = _both(source, "transformers")
    tokenizer, scale = source.opened.tokenizer, math.log(source.scale)
    if isinstance(source.sizes, Blueprint) and source.sizes.layout == "transformers":
        sizes, tensors = source.sizes.config, siglip_tensors(visual, text, scale, source.bias or 0.0)
    else:
        end = tokenizer.eot if isinstance(tokenizer, Tokenizer | ClipTokenizer) else LEGACY_END
        sizes = clip_config(visual, text, end=end, scale=scale)
        tensors = clip_tensors(visual, text, scale)
        if source.bias is not None:  # which CLIPModel leaves aside
            tensors["logit_bias"] = torch.tensor(source.bias)
    save_file(tensors, draft / "model.safetensors", metadata={"format": "pt"})
    (draft / "config.json").write_text(json.dumps(sizes, indent=1), encoding="utf-8")
    (draft / "preprocessor_config.json").write_text(json.dumps(processor, indent=1), encoding="utf-8")
    if not _write_tokenizer(draft, tokenizer) and isinstance(tokenizer, ClipTokenizer):
        write_clip_pairs(draft, tokenizer)


def write_clip_pairs(draft: Path, tokenizer: ClipTokenizer) -> None:
    """Write CLIP's own byte pairs as `transformers.CLIPTokenizer` reads them."""
    vocabulary, merges = tokenizer.vocabulary()
    (draft / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (draft / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    end = "<|endoftext|>"
    settings = {"tokenizer_class": "CLIPTokenizer", "bos_token": "<|startoftext|>", "eos_token": end, "pad_token": end}
    (draft / "tokenizer_config.json").write_text(json.dumps(settings | {"unk_token": end}, indent=1), encoding="utf-8")


def _write_safetensors(draft: Path, source: _Source) -> None:
    tensors = {name: value.contiguous() for name, value in source.opened.model.state_dict().items()}
    save_file(tensors, draft / "model.safetensors", metadata={"step": str(source.opened.step)})
    (draft / "config.toml").write_text(config.to_toml(source.run), encoding="utf-8")
    (draft / "tokenizer.json").write_text(source.opened.tokenizer.to_json(), encoding="utf-8")
    if isinstance(source.sizes, Blueprint):
        (draft / "blueprint.json").write_text(source.sizes.to_json(), encoding="utf-8")
    facts: dict[str, Any] = {"step": source.opened.step, "inv_tau": source.scale}
    facts |= {"image_size": source.opened.image_size} | ({} if source.bias is None else {"bias": source.bias})
    facts |= {"context_length": source.opened.context_length, "embed_dim": source.sizes.embed_dim}
    (draft / "model.json").write_text(json.dumps(facts | {"preprocess_cfg": _pixels(source.sizes)}, indent=1), "utf-8")


def _write_peft(draft: Path, source: _Source) -> None:
    loaded = checkpoint.load(source.folder / "checkpoints" / f"step_{source.opened.step:06d}", training=False)
    parts = {
        name.removeprefix("towers."): matrix
        for name, matrix in low_rank_matrices(loaded.weights).items()
        if name.startswith("towers.")
    }
    if not parts:
        raise UserError(f"{source.run.name} was trained without LoRA, so there is no adapter. Use --format open_clip.")
    matrices = {name: (matrix[DOWN], matrix[UP]) for name, matrix in parts.items()}
    first = next(iter(parts.values()))
    rank = len(first[DOWN])
    adapter = Adapter(rank, float(first[SCALE]) * rank, matrices)
    for name, content in adapter_files(adapter, source.run.tuning.start).items():
        (draft / name).write_bytes(content)


class _UnitRows(nn.Module):
    """A tower whose output has unit rows."""

    def __init__(self, tower: nn.Module) -> None:
        super().__init__()
        self.tower = tower

    def forward(self, inputs: Float[Tensor, "n 3 s s"] | Int[Tensor, "n length"]) -> Float[Tensor, "n d"]:
        rows = self.tower(inputs)
        return F.normalize(rows[0] if isinstance(rows, tuple) else rows, dim=1)


def _write_onnx(draft: Path, source: _Source) -> None:
    visual, text = _both(source, "ONNX")
    opened = source.opened
    pixels = torch.zeros(2, 3, opened.image_size, opened.image_size)
    tokens = opened.tokenizer.encode(["a", "b c"], opened.context_length)
    _export(visual, pixels, draft / "image.onnx", "pixels")
    _export(text, tokens, draft / "text.onnx", "tokens")
    _write_tokenizer(draft, opened.tokenizer)
    facts: dict[str, Any] = {"step": opened.step, "logit_scale": math.log(source.scale)}
    facts |= {"context_length": opened.context_length} | ({} if source.bias is None else {"logit_bias": source.bias})
    (draft / "model.json").write_text(json.dumps(facts | {"preprocess_cfg": _pixels(source.sizes)}, indent=1), "utf-8")


def _export(tower: nn.Module, example: Tensor, file: Path, name: str) -> None:
    export: Callable[..., Any] = torch.onnx.export
    try:
        export(
            _UnitRows(tower).eval(),
            (example,),
            file,
            input_names=[name],
            output_names=["unit_embedding"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            opset_version=_OPSET,
            external_data=False,
            dynamo=True,
            verbose=False,
        )
    except ImportError as error:
        raise UserError(
            f"ONNX needs a library that is missing ({error.name}). Install it: pip install 'contrastive-explorer[onnx]'"
        ) from error
