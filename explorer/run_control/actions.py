"""Changes to the store on behalf of the user, run off the GUI thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from trainer import config
from trainer.config import presets
from trainer.config.small_batches import longer_run
from trainer.distribution import training_part
from trainer.scheduling import launch, queue
from trainer.store import EVALUATING, Workspace
from trainer.store.branch import branch as branch_of

if TYPE_CHECKING:
    from trainer.places.bindings import Binding

DECODER: Final = "decoder-scenes"
"""Preset of the decoder that is trained for a run."""


def create_and_launch(
    workspace: Workspace,
    run: config.Run,
    preset: str = "",
    *,
    parent: int | None = None,
    binding: Binding | None = None,
    named: bool = False,
) -> int:
    """Create a run, start its trainer, at the place of `binding` if there is one, and return the run's id."""
    config.check(run)
    if binding is None:
        training_part.check("Training")
    created = workspace.runs.create(_placed(run), preset=preset, parent=parent, named=named)
    if binding is not None:
        from trainer.places.follower import send

        send(workspace, created, binding)
    launch.start_detached(workspace, created)
    return created


def create_demo(workspace: Workspace) -> int:
    """Queue the demo runs and return the first id; the next poll starts it.

    Without a GPU two train at once, each on half of the cores.
    """
    created = [
        workspace.runs.create(run, status="queued", preset=preset) for preset, run in presets.demo_runs().items()
    ]
    queue.share_processor(workspace, created)
    return created[0]


def decoder_like(workspace: Workspace, run: int, like: int | None = None) -> config.Run:
    """Return the configuration of a decoder of `run`.

    Args:
        run: Whose embeddings are decoded.
        like: A decoder with which it is to be compared: size, seed and steps are its own; None: the preset.
    """
    of = workspace.runs.config_of(run)
    decoder = presets.preset(DECODER) if like is None else workspace.runs.config_of(like)
    assert isinstance(decoder.objective, config.EmbeddingDecoder)
    objective = dataclasses.replace(decoder.objective, of=str(run), of_step=-1)
    return dataclasses.replace(decoder, data=of.data, model=of.model, objective=objective, name=f"decoder of {of.name}")


def fine_tuning_like(workspace: Workspace, run: int) -> config.Run:
    """Return the configuration of a run that continues from the weights of `run`, by what these are."""
    row = workspace.runs.get(run)
    made = config.fine_tuning_of(workspace.runs.config_of(run), row.folder.name)
    return dataclasses.replace(made, tuning=dataclasses.replace(made.tuning, reference=config.OF_START))


def mix_like(workspace: Workspace, runs: Sequence[int]) -> config.Run:
    """Return the configuration of a run that measures mixes of these runs with what they were fine-tuned from."""
    from trainer.experiments.mixes import mix_run

    return mix_run(workspace, runs)


def queue_decoders(workspace: Workspace, runs: Sequence[int], like: int | None = None) -> int:
    """Queue a decoder of each run and return the first id; they are alike, so that they compare."""
    made = [decoder_like(workspace, run, like) for run in runs]
    return enqueue(workspace, made, DECODER)


def create_ablation(workspace: Workspace, levels: Sequence[float]) -> int:
    """Start an ablation at each co-occurrence as an experiment and return its first run; the next poll starts that."""
    from trainer.experiments.experiment import ablation
    from trainer.scheduling import experiments

    template = presets.preset("clip-scenes")
    created: list[int] = []
    for level in levels:
        run = config.replace(template, "data.cooccurrence", str(level))
        taken = [row.name for row in workspace.experiments.all()]
        created += experiments.begin(workspace, ablation(run, taken))
    return created[0]


def branch(workspace: Workspace, run: int, step: int, name: str) -> int:
    """Create a branch, queue it and return its id."""
    made = branch_of(workspace, run, step, name)
    workspace.runs.enqueue(made)
    return made


def enqueue(
    workspace: Workspace,
    runs: Sequence[config.Run],
    preset: str = "",
    *,
    parent: int | None = None,
    priority: int = 0,
    after: int | None = None,
    named: bool = False,
) -> int:
    """Queue new runs and return the first id."""
    first, *_others = [
        workspace.runs.create(
            _placed(run), status="queued", preset=preset, parent=parent, priority=priority, after=after, named=named
        )
        for run in runs
    ]
    return first


def _placed(run: config.Run) -> config.Run:
    """Return the run with absolute paths, because its trainer works in another folder."""
    return dataclasses.replace(run, data=config.absolute(run.data))


def requeue(workspace: Workspace, run_id: int) -> None:
    """Queue a run that ended early again; it resumes from its newest checkpoint."""
    launch.check_trainable(workspace, workspace.runs.get(run_id))
    workspace.runs.enqueue(run_id)


def copy_of(workspace: Workspace, run_id: int, data: config.Data | None = None) -> config.Run:
    """Return the run's configuration, on other data where some are given, under the name of one that nobody named."""
    original = workspace.runs.config_of(run_id)
    data = data or original.data
    return dataclasses.replace(original, data=data, name=config.named_after(data, original.objective.kind))


def longer_copy(workspace: Workspace, run_id: int) -> tuple[config.Run, str]:
    """Return a copy of a run of an experiment as of `longer_run`, and a sentence about its batches if they are larger.

    Its seed is the first after all of the experiment, which keeps the names of its runs apart from those.
    """
    row, copy = workspace.runs.get(run_id), copy_of(workspace, run_id)
    runs = workspace.runs.of_experiment(row.experiment)
    configs = [workspace.runs.config_of(each.id) for each in runs]
    longer = longer_run(copy, row.facts["train_pairs"], (each.objective for each in configs))
    before, after = copy.optimizer.batch_size, longer.optimizer.batch_size
    note = f"Batches of {after} instead of {before}: CLOOB may collapse in smaller ones." if after > before else ""
    return dataclasses.replace(longer, seed=1 + max(each.seed for each in configs)), note


def last_own_data(workspace: Workspace) -> dict[str, Any]:
    """Return what the New run form starts with: data and preset of the newest run, if its data are the person's own."""
    began = (row for row in workspace.runs.all() if "train_pairs" in row.facts or row.status == "queued")
    if (row := max(began, key=lambda row: row.id, default=None)) is None:
        return {}
    run = workspace.runs.config_of(row.id)
    if run.data.is_drawn or not config.is_pairs(run.data) or run.objective.source is not None:
        return {}
    return {
        "preset": row.preset or "clip-folder",
        "data": run.data,
        "pairs": row.facts.get("train_pairs"),
        "image_size": getattr(run.model, "image_size", None),
        "captions_repeat": getattr(run.objective, "mask_duplicates", False),
        "note": f"Data of the last run: {config.data_name(run.data)}",
    }


def config_of(workspace: Workspace, run_id: int) -> config.Run:
    """Return the run's configuration."""
    return workspace.runs.config_of(run_id)


def write_note(workspace: Workspace, run_id: int, note: str) -> None:
    """Save a note with the run."""
    workspace.runs.write_note(run_id, note)


def add_experiment(workspace: Workspace, name: str, definition: str) -> None:
    """Store and start an experiment."""
    from trainer.scheduling import experiments

    workspace.experiments.add(name, definition)
    experiments.start(workspace, name)


def each(function: Callable[[int], None], runs: Sequence[int]) -> None:
    """Call `function` with every run."""
    for run in runs:
        function(run)


class Responsiveness(Struct, frozen=True):
    """The progress of a run that was asked to stop but is still active."""

    kept: int | None = None  # Step of its newest checkpoint; None where there is none, or the store does not say.
    draft: frozenset[tuple[str, int]] = frozenset()  # What the next one holds so far.
    measured: int | None = None  # Counts its signs of life where it evaluates; None where it does something else.


def look(workspace: Workspace, run: int, remind: bool) -> Responsiveness:
    """Return what the run has saved; `remind` sends its trainer the stop signal again."""
    if remind:
        launch.remind(workspace, run)
    row = workspace.runs.get(run)
    measured = row.beats if row.phase == EVALUATING else None
    return Responsiveness(newest_checkpoint(workspace, run), launch.draft(workspace, run), measured)


def newest_checkpoint(workspace: Workspace, run: int) -> int | None:
    """Return the step of the newest checkpoint of `run`; None if there is none."""
    return max((row.step for row in workspace.results.checkpoints(run)), default=None)


def continuation(workspace: Workspace, run: int) -> tuple[int | None, bool]:
    """Return the step of the newest checkpoint, and whether the run ended while it could still be downloading.

    A published model, or a data set of a hub, is fetched before the first checkpoint, and a resumed run goes on with
    what has arrived.
    """
    step, row = newest_checkpoint(workspace, run), workspace.runs.config_of(run)
    downloads = row.model.is_published or row.data.is_downloaded
    return step, step is None and downloads


def start_clip_and_cloob(workspace: Workspace, run: int | config.Run | None, seeds: int | None = None) -> str:
    """Store and start the experiment CLIP + CLOOB like this run, or on Scenes without one; return its name.

    It has as many seeds as asked for; None: 3 to 5, until it is decided.
    """
    from trainer.experiments.experiment import clip_and_cloob
    from trainer.scheduling import experiments

    run_config = workspace.runs.config_of(run) if isinstance(run, int) else run
    made = clip_and_cloob(run_config, (row.name for row in workspace.experiments.all()), seeds=seeds)
    experiments.begin(workspace, made)
    return made.name


def start_pair(workspace: Workspace, run_a: int, run_b: int) -> str:
    """Store and start an experiment of the settings of two runs, with further seeds; return its name."""
    from trainer.experiments.experiment import of_pair
    from trainer.scheduling import experiments

    first, second = (workspace.runs.config_of(run) for run in (run_a, run_b))
    made = of_pair(first, second, (row.name for row in workspace.experiments.all()))
    experiments.begin(workspace, made)
    return made.name
