"""Names of metrics of other programs that are the same quantity here; every other one stays as it is.

Measured on the programs themselves. InfoNCE depends on the batch it is taken in, so a validation loss keeps its batch
as a fact (`VAL_BATCH`). Retrieval of open_clip counts the caption of the pair alone, where any equal one counts here:
wherever captions repeat these are two questions, and have two names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, TypeVar

Program = Literal["open_clip", "lightning", "transformers"]
"""Whose training it is, and whose names its metrics have."""
Value = TypeVar("Value")

_NAMES: Final[dict[Program, dict[str, str]]] = {
    "open_clip": {
        "Loss": "train/loss",
        "loss": "train/loss",
        "LR": "train/learning_rate",
        "lr": "train/learning_rate",
        "train/lr": "train/learning_rate",
        "Logit Scale": "train/inv_tau",
        "scale": "train/inv_tau",
        "train/scale": "train/inv_tau",
        "samples_per_second": "train/pairs_per_s",
        "train/samples_per_second": "train/pairs_per_s",
        "clip_val_loss": "val/loss",
        "val/clip_val_loss": "val/loss",
        "imagenet-zeroshot-val-top1": "val/zero_shot_acc1",
        "imagenet-zeroshot-val-top5": "val/zero_shot_acc5",
        "val/imagenet-zeroshot-val-top1": "val/zero_shot_acc1",
        "val/imagenet-zeroshot-val-top5": "val/zero_shot_acc5",
    },
    "transformers": {
        "loss": "train/loss",
        "learning_rate": "train/learning_rate",
        "grad_norm": "train/gradient_norm",
        "eval_loss": "val/loss",
        "eval/loss": "val/loss",
    },
    "lightning": {
        "train/loss_step": "train/loss",
        "train_loss_step": "train/loss",
        "train_loss": "train/loss",
        "val_loss": "val/loss",
    },
}
_NO_CURVES: Final[dict[Program, re.Pattern[str]]] = {
    "open_clip": re.compile(r"(val/)?(epoch|num_samples)|(train/)?(data|batch)_time"),
    "transformers": re.compile(r"epoch|train_loss|total_flos|.*_(runtime|per_second|per_second_per_gpu)"),
    "lightning": re.compile(r"epoch|hp_metric"),
}
"""What is a fact or a time of day rather than a quantity of the training."""
_RETRIEVAL: Final = r"((?:image_to_text|text_to_image)_(?:R.\d+|median_rank|mean_rank))"
_OF_OPEN_CLIP: Final = re.compile(rf"(?:val/)?{_RETRIEVAL}")
_OF_LIGHTNING: Final = re.compile(rf"val[_/]{_RETRIEVAL}")


def shared_names(
    values: Mapping[str, Value], program: Program | Literal[""], *, distinct_captions: bool = False
) -> dict[str, Value]:
    """Return the values by the names of this application, without those that make no curve.

    Args:
        values: By the names of `program`.
        program: Whose names they are; empty: those of this application, or the person's own.
        distinct_captions: No two pairs of the validation data have equal captions, so that retrieval is one quantity.
    """
    if not program:
        return dict(values)
    no_curve = _NO_CURVES[program]
    return {
        shared_name(name, program, distinct_captions=distinct_captions): value
        for name, value in values.items()
        if not no_curve.fullmatch(name)
    }


def shared_name(name: str, program: Program, *, distinct_captions: bool = False) -> str:
    """Return what this application calls a metric of `program`; see `shared_names`."""
    if shared := _NAMES[program].get(name):
        return shared
    if program == "open_clip" and (match := _OF_OPEN_CLIP.fullmatch(name)):
        return f"val/{match[1]}" if distinct_captions else f"val/paired_{match[1]}"
    if program == "transformers" and name.startswith("eval_"):
        return f"val/{name.removeprefix('eval_')}"
    if program == "lightning" and (match := _OF_LIGHTNING.fullmatch(name)):
        return f"val/{match[1]}"
    # Groups of parameters have a rate each, and which is the one of this application nobody said.
    is_rate = program == "lightning" and re.fullmatch(r"lr-[^/]+", name)
    return "train/learning_rate" if is_rate else name
