"""LoRA adapters in the files of PEFT: `adapter_config.json` and `adapter_model.safetensors`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save
from torch import Tensor

from trainer.models.lora import Adapter
from trainer.pretrained.errors import PretrainedError
from trainer.pretrained.weights import read_weights
from trainer.store.files import write_atomically
from trainer.untrusted import files as untrusted_files

KEPT: Final = "adapter"
"""Folder of a run with the adapter that it began with."""
CONFIG_FILE: Final = "adapter_config.json"
WEIGHTS_FILE: Final = "adapter_model.safetensors"
_PREFIX: Final = "base_model.model."
_IN_PROJ: Final = ".in_proj_weight"
_OUT_PROJ: Final = ".out_proj"
_WRAPPED: Final = ".base_layer.out_proj"
"""PEFT wraps an attention layer whole, with its last matrix inside."""
_TIMES: Final = 2.0
"""How often PEFT counts the product of that last matrix: once with the layer, once with the matrix itself (0.21.2,
`MultiheadAttention.merge`), in training and in what it merges for good. A power of two, so that halving is exact."""
_PLAIN: Final[Mapping[str, Any]] = {
    "use_dora": False,
    "use_rslora": False,
    "rank_pattern": {},
    "alpha_pattern": {},
    "bias": "none",
    "modules_to_save": None,
}
"""Settings of PEFT that change what an adapter computes, where they do nothing."""


def read_adapter(folder: Path) -> Adapter:
    """Return the adapter that PEFT saved in a folder, for towers named as in open_clip.

    Raises:
        PretrainedError: It is missing or damaged, or is no plain LoRA.
    """
    try:
        settings = untrusted_files.read_record(folder / CONFIG_FILE)
        rank, alpha = int(settings["r"]), float(settings["lora_alpha"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PretrainedError(
            f"{folder} holds no adapter of PEFT: {error}. Choose the folder with {CONFIG_FILE}."
        ) from error
    other = [name for name, value in _PLAIN.items() if settings.get(name, value) not in (value, None)]
    if settings.get("peft_type") != "LORA" or other:
        raise PretrainedError(
            f"{folder} is {settings.get('peft_type')} with {', '.join(other) or 'other parts'}: no plain LoRA. "
            "Merge it there (merge_and_unload) and open the merged model."
        )
    tensors = read_weights(folder / WEIGHTS_FILE)
    return Adapter(rank, alpha, _by_plain_names(tensors, folder))


def _by_plain_names(tensors: Mapping[str, Tensor], folder: Path) -> dict[str, tuple[Tensor, Tensor]]:
    paths = {name.removesuffix(".lora_A.weight") for name in tensors if name.endswith(".lora_A.weight")}
    matrices: dict[str, tuple[Tensor, Tensor]] = {}
    for path in sorted(paths):
        down, up = tensors[f"{path}.lora_A.weight"], tensors.get(f"{path}.lora_B.weight")
        if up is None:
            raise PretrainedError(f"{folder} is damaged: {path} has one half of its product. Get it again.")
        if path.endswith(_WRAPPED):
            if not up.any():
                continue  # PEFT has one beside every last matrix, whether it learned or not
            up = _TIMES * up
        is_attention = f"{path}{_WRAPPED}" in paths
        plain = path.removeprefix(_PREFIX).replace(_WRAPPED, _OUT_PROJ) + (_IN_PROJ if is_attention else ".weight")
        matrices[plain if plain.startswith(("visual.", "text.")) else f"text.{plain}"] = down, up
    return matrices


def adapter_files(adapter: Adapter, base: str) -> dict[str, bytes]:
    """Return the files of an adapter as PEFT saves them: name -> content.

    Args:
        adapter: Of two towers, whose names are those of open_clip's `CustomTextCLIP`.
        base: Of the model it is for, for people.
    """
    tensors: dict[str, Tensor] = {}
    modules = []
    for name, (down, up) in adapter.matrices.items():
        path = _path_of(name, adapter.matrices)
        up = up / _TIMES if path.endswith(_WRAPPED) else up
        tensors |= {f"{_PREFIX}{path}.lora_A.weight": down, f"{_PREFIX}{path}.lora_B.weight": up}
        modules += [] if path.endswith(_WRAPPED) else [path]
        last = f"{_PREFIX}{path}{_WRAPPED}"
        if name.endswith(_IN_PROJ) and f"{path}{_OUT_PROJ}.weight" not in adapter.matrices:
            nothing = torch.zeros_like(down)
            tensors |= {f"{last}.lora_A.weight": nothing, f"{last}.lora_B.weight": nothing.T}
    settings = {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": base,
        "inference_mode": True,
        "r": adapter.rank,
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.0,
        "fan_in_fan_out": False,
        "target_modules": sorted(modules),
        **_PLAIN,
    }
    weights = save({name: value.contiguous() for name, value in tensors.items()}, metadata={"format": "pt"})
    return {CONFIG_FILE: json.dumps(settings, indent=1).encode(), WEIGHTS_FILE: weights}


def _path_of(name: str, matrices: Mapping[str, Any]) -> str:
    """Return the module that holds a matrix's product in PEFT."""
    if name.endswith(_IN_PROJ):
        return name.removesuffix(_IN_PROJ)
    path = name.removesuffix(".weight")
    attention = path.removesuffix(_OUT_PROJ)
    return f"{attention}{_WRAPPED}" if f"{attention}{_IN_PROJ}" in matrices else path


def keep_adapter(run_folder: Path, adapter: Adapter) -> None:
    """Keep in a run's folder the adapter that it begins with: later sessions need its sizes."""

    def write(draft: Path) -> None:
        draft.mkdir(mode=0o700)
        for name, content in adapter_files(adapter, "").items():
            (draft / name).write_bytes(content)

    if not (run_folder / KEPT).exists():
        write_atomically(run_folder / KEPT, write)


def kept_adapter(run_folder: Path) -> Adapter | None:
    """Return the adapter that a run began with; None for none."""
    return read_adapter(run_folder / KEPT) if (run_folder / KEPT).is_dir() else None
