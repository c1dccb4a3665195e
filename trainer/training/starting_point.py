"""What a run starts from: random towers, a published model, or the frozen towers of another run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from trainer import config, pretrained
from trainer.analysis.progress import Progress
from trainer.checkpoints import checkpoint
from trainer.config import SourceRun
from trainer.data.published_tokenizers import AnyTokenizer, read_tokenizer
from trainer.models import Architecture
from trainer.pretrained import BLUEPRINT, read_architecture
from trainer.store import RunLog, RunRow, Workspace, disk, write_atomically
from trainer.untrusted import files as untrusted_files

TOKENIZER = "tokenizer.json"
"""File of a run with its tokenizer."""


@dataclass(frozen=True)
class StartingPoint:
    """What is known before the data are read.

    Attributes:
        sizes: Of the towers.
        tokenizer: Of the model that the run starts from; None: the run's own.
        published: The model; None without one, or where a checkpoint has the weights.
        weights: Of the frozen towers of another run, without a prefix; None likewise.
    """

    sizes: Architecture
    tokenizer: AnyTokenizer | None = None
    published: pretrained.ResolvedModel | None = None
    weights: Mapping[str, Tensor] | None = None


def starting_point(workspace: Workspace, run: config.Run, log: RunLog, progress: Progress) -> StartingPoint:
    """Return what a run starts from, and keep in its folder what later sessions need of it.

    Raises:
        CheckpointError: The run whose towers it takes has no such checkpoint.
        StoreError: There is no such run.
        PretrainedError: The published model cannot be opened.
    """
    blueprint, checkpoints = log.folder / BLUEPRINT, log.folder / "checkpoints"
    is_saved = (log.folder / TOKENIZER).exists() and bool(checkpoint.steps(checkpoints))
    if run.objective.source is not None and not is_saved:
        return _of_run(workspace, run, log, run.objective.source)
    if run.objective.source or isinstance(run.model, config.TinyTowers) or (is_saved and blueprint.exists()):
        return StartingPoint(read_architecture(run.model, log.folder))
    published = pretrained.find(run.model, cache=workspace.folder / "cache", progress=progress)
    keep(blueprint, published.blueprint.to_json())
    return StartingPoint(published.blueprint, published.tokenizer, published=published)


def keep(file: Path, text: str) -> None:
    """Write a file that later sessions need, unless it exists."""

    def write(draft: Path) -> None:
        draft.write_text(text, encoding="utf-8")

    with disk.writing(file.name, file, 2 * len(text)):
        if not file.exists():
            write_atomically(file, write, private=True)


def _of_run(workspace: Workspace, run: config.Run, log: RunLog, source: SourceRun) -> StartingPoint:
    run_row = workspace.runs.get(source.run)
    loaded = _checkpoint(run_row, source.step)
    blueprint = run_row.folder / BLUEPRINT
    if blueprint.is_file():
        keep(log.folder / BLUEPRINT, untrusted_files.read_text(blueprint, untrusted_files.MOST_FACTS))
    log.facts(decodes={"run": run_row.id, "name": run_row.name, "objective": run_row.objective, "step": loaded.step})
    weights = loaded.averaged().weights
    towers = {key.removeprefix("towers."): value for key, value in weights.items() if key.startswith("towers.")}
    tokenizer = read_tokenizer(loaded.tokenizer)
    return StartingPoint(read_architecture(run.model, log.folder), tokenizer, weights=towers)


def _checkpoint(run_row: RunRow, step: int) -> checkpoint.Checkpoint:
    folder = run_row.folder / "checkpoints"
    if step >= 0:
        return checkpoint.load(folder / f"step_{step:06d}", training=False)
    loaded, _ = checkpoint.newest(folder, training=False)
    if loaded is None:
        raise checkpoint.CheckpointError(
            f"{run_row.name} has no checkpoint to decode. Train it first, then resume this decoder."
        )
    return loaded
