"""The folder that `trainer runs export --format safetensors` writes: a run's weights by this project's own names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer import config
from trainer.data.tokenizers import AnyTokenizer, read_tokenizer
from trainer.errors import UserError
from trainer.models import Blueprint
from trainer.models.towers import open_clip_sizes
from trainer.pretrained.errors import PretrainedError
from trainer.pretrained.state_dict_formats import Learned
from trainer.untrusted import files as untrusted_files

WEIGHTS_FILE: Final = "model.safetensors"
_BLUEPRINT: Final = "blueprint.json"


@dataclass(frozen=True)
class ExportedRun:
    """Contents of such a folder apart from its weights."""

    blueprint: Blueprint  # What its towers are built from.
    tokenizer: AnyTokenizer
    learned: Learned  # Its objective and temperature.


def read_exported_run(folder: Path) -> ExportedRun:
    """Return the contents of such a folder apart from its weights.

    Raises:
        PretrainedError: A file of it is damaged, or the model has not both towers or more than them.
    """
    try:
        run = config.read(folder / "config.toml")
        tokenizer = read_tokenizer(untrusted_files.read_text(folder / "tokenizer.json", untrusted_files.MOST_TOKENIZER))
        facts = untrusted_files.read_record(folder / "model.json")
        if (folder / _BLUEPRINT).is_file():
            blueprint = Blueprint.from_json(untrusted_files.read_text(folder / _BLUEPRINT))
        else:
            blueprint = _of_tiny(run, tokenizer, facts["preprocess_cfg"])
        learned = _learned(run.objective, float(facts["inv_tau"]), facts.get("bias"))
    except PretrainedError:
        raise
    except (UserError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PretrainedError(f"The exported run {folder} cannot be read: {error}. Export it again.") from error
    return ExportedRun(blueprint, tokenizer, learned)


def _of_tiny(run: config.Run, tokenizer: AnyTokenizer, pixels: dict[str, Any]) -> Blueprint:
    sizes = run.model
    if not isinstance(sizes, config.TinyTowers) or not run.objective.compares_pairs or sizes.projection != "linear":
        raise PretrainedError(
            f"{run.name} has other parts than two towers with one projection each, which only its own run opens. "
            "Import the run's folder: trainer runs import FOLDER."
        )
    mean, deviation = tuple(pixels["mean"]), tuple(pixels["std"])
    # Own towers read single pictures as the export says.
    return Blueprint("open_clip", open_clip_sizes(sizes, tokenizer.size), mean, deviation, "shortest", "bicubic")


def _learned(objective: config.Objective, inv_tau: float, bias: Any) -> Learned:
    if isinstance(objective, config.SigLip):
        return Learned("siglip", inv_tau, None if bias is None else float(bias))
    if isinstance(objective, config.Cloob):
        return Learned("cloob", inv_tau, None, objective.scale_hopfield)
    return Learned("clip", inv_tau)
