"""What a run starts from: random towers, a published model, or the towers of another run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from trainer import config, methods, pretrained
from trainer.analysis.progress import Progress
from trainer.checkpoints import checkpoint
from trainer.config import SourceRun
from trainer.data.tokenizers import AnyTokenizer, read_tokenizer
from trainer.models import Architecture
from trainer.models.lora import Adapter
from trainer.pretrained import BLUEPRINT, read_architecture
from trainer.pretrained.peft_layout import keep_adapter, kept_adapter, read_adapter
from trainer.pretrained.state_dict_formats import Learned
from trainer.store import RunLog, RunRow, Workspace, disk, write_atomically
from trainer.untrusted import files as untrusted_files

TOKENIZER = "tokenizer.json"
"""File of a run with its tokenizer."""
START_FILE: Final = "start.toml"
"""File of a fine-tuning with the configuration of the run that it started from."""


@dataclass(frozen=True)
class StartingPoint:
    """What is known before the data are read."""

    sizes: Architecture
    tokenizer: AnyTokenizer | None = None  # Of the model that the run starts from; None: the run's own.
    # The model; None without one, or where a checkpoint has the weights.
    published: pretrained.ResolvedModel | None = None
    weights: Mapping[str, Tensor] | None = None  # Of the towers of another run, without a prefix; None likewise.
    learned: Learned | None = None  # Temperature and bias of that run.
    adapter: Adapter | None = None  # Where LoRA begins; None: at nothing.

    @property
    def session_arguments(self) -> dict[str, Any]:
        """Keyword arguments of a `TrainingSession`."""
        return {
            "published": self.published,
            "built_from": self.sizes,
            "source": self.weights,
            "learned": self.learned,
            "adapter": self.adapter,
        }


def starting_point(workspace: Workspace, run: config.Run, log: RunLog, progress: Progress) -> StartingPoint:
    """Return what a run starts from, and keep in its folder what later sessions need of it.

    Raises:
        CheckpointError: The run whose towers it takes has no such checkpoint.
        PretrainedError: The published model cannot be opened.
    """
    blueprint, checkpoints = log.folder / BLUEPRINT, log.folder / "checkpoints"
    is_saved = (log.folder / TOKENIZER).exists() and bool(checkpoint.steps(checkpoints))
    source = source_of(run)
    if source is not None and not is_saved:
        return _of_run(workspace, run, log, source)
    if source or isinstance(run.model, config.TinyTowers) or (is_saved and blueprint.exists()):
        return StartingPoint(read_architecture(run.model, log.folder), adapter=kept_adapter(log.folder))
    published = pretrained.find(run.model, cache=workspace.folder / "cache", progress=progress)
    keep(blueprint, published.blueprint.to_json())
    return StartingPoint(published.blueprint, published.tokenizer, published=published)


def start_config(run_folder: Path) -> config.Run | None:
    """Return the configuration of the run that a fine-tuning started from; None for another beginning."""
    file = run_folder / START_FILE
    return config.read(file) if file.is_file() else None


def keep(file: Path, text: str) -> None:
    """Write a file that later sessions need, unless it exists."""

    def write(draft: Path) -> None:
        draft.write_text(text, encoding="utf-8")

    with disk.writing(file.name, file, 2 * len(text)):
        if not file.exists():
            write_atomically(file, write, private=True)


def source_of(run: config.Run) -> SourceRun | None:
    """Return the run whose towers a run begins with, frozen to be decoded or to go on; None for another beginning."""
    if run.objective.source is None and run.tuning.start_run:
        return SourceRun(run.tuning.start_run, run.tuning.start_step)
    return run.objective.source


@dataclass(frozen=True)
class TrainedTowers:
    """The towers of a checkpoint of a run, LoRA and averages worked in."""

    row: RunRow
    step: int
    sizes: Architecture
    tokenizer: AnyTokenizer
    weights: dict[str, Tensor]  # Without a prefix.
    learned: Learned  # Its temperature and bias.


def trained_towers(workspace: Workspace, source: SourceRun) -> TrainedTowers:
    """Return the towers of a run in a workspace.

    Raises:
        CheckpointError: It has no such checkpoint.
        ModelError: The run does not tell what its towers are built from.
    """
    row = workspace.runs.get(source.run)
    run = workspace.runs.config_of(row.id)
    loaded = checkpoint_of(row, source.step)
    weights = loaded.averaged().weights
    towers = {key.removeprefix("towers."): value for key, value in weights.items() if key.startswith("towers.")}
    tokenizer = read_tokenizer(loaded.tokenizer)
    return TrainedTowers(
        row, loaded.step, read_architecture(run.model, row.folder), tokenizer, towers, _learned(run, loaded)
    )


def _learned(run: config.Run, loaded: checkpoint.Checkpoint) -> Learned:
    if not run.objective.compares_pairs:
        return Learned()
    method = methods.build(run.objective)
    checkpoint.load_weights(loaded, {"method": method})
    return Learned(inv_tau=method.inv_tau, bias=method.logit_bias)


def prospective_start(run: config.Run, workspace_folder: Path, progress: Progress) -> StartingPoint:
    """Return what a run would start from that has no folder yet: to measure what it takes, for instance.

    Raises:
        UserError: As `starting_point`.
    """
    if (source := source_of(run)) is not None:
        return _start_of(run, trained_towers(Workspace(workspace_folder), source))
    if isinstance(run.model, config.TinyTowers):
        return StartingPoint(run.model)
    published = pretrained.find(run.model, cache=workspace_folder / "cache", progress=progress)
    return StartingPoint(published.blueprint, published.tokenizer, published=published)


def _start_of(run: config.Run, trained: TrainedTowers) -> StartingPoint:
    folder = run.tuning.adapter.strip()
    return StartingPoint(
        trained.sizes,
        trained.tokenizer,
        weights=trained.weights,
        learned=trained.learned,
        adapter=read_adapter(Path(folder).expanduser()) if folder else None,
    )


def _of_run(workspace: Workspace, run: config.Run, log: RunLog, source: SourceRun) -> StartingPoint:
    trained = trained_towers(workspace, source)
    blueprint = trained.row.folder / BLUEPRINT
    if blueprint.is_file():
        keep(log.folder / BLUEPRINT, untrusted_files.read_text(blueprint, untrusted_files.MOST_FACTS))
    facts = {"run": trained.row.id, "name": trained.row.name, "objective": trained.row.objective, "step": trained.step}
    log.facts(**{"starts_from" if run.objective.source is None else "decodes": facts})
    if run.tuning.start_run:
        keep(log.folder / START_FILE, config.to_toml(workspace.runs.config_of(trained.row.id)))
    start = _start_of(run, trained)
    if start.adapter is not None:
        keep_adapter(log.folder, start.adapter)
    return start


def checkpoint_of(run_row: RunRow, step: int) -> checkpoint.Checkpoint:
    """Return a checkpoint of a run; -1: its newest.

    Raises:
        CheckpointError: It has none of that step.
    """
    folder = run_row.folder / "checkpoints"
    if step >= 0:
        return checkpoint.load(folder / f"step_{step:06d}", training=False)
    loaded, _ = checkpoint.newest(folder, training=False)
    if loaded is None:
        raise checkpoint.CheckpointError(
            f"{run_row.name} has no checkpoint to start from. Train it first, then resume this run."
        )
    return loaded
