"""The untrained model is measured before the training pictures are drawn, with the same numbers as afterwards."""

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.nightly import few_plain, nightly_except
from tests.trainer.training.conftest import TINY
from trainer import config, data
from trainer.checkpoints import checkpoint
from trainer.data.scenes import folder_of, is_drawn, planned_sources, sources, writing
from trainer.store import RunLog, Workspace, read_snapshot
from trainer.training import fit as training
from trainer.training import metric_logger
from trainer.training.control import ControlFlags
from trainer.training.fit import may_be_measured_ahead
from trainer.training.session import TrainingSession

pytestmark = pytest.mark.slow

# Nearly every test draws its own pictures.
SMALL = replace(
    TINY,
    data=config.Scenes(train_pairs=64, heldout_pairs=16),
    optimizer=replace(TINY.optimizer, batch_size=16, epochs=2),
)
NOT_COMPARED = ("system/", "train/pairs_per_s", "train/data_wait")


def quiet(share: float, note: str) -> None:
    pass


def curves(workspace: Workspace, run: int) -> dict[tuple[int, str], float]:
    """Return (step, name) -> value from the journal, without speeds; fail on duplicate numbers."""
    found: dict[tuple[int, str], float] = {}
    for line in map(json.loads, (workspace.runs.get(run).folder / "metrics.jsonl").read_text().splitlines()):
        for name, value in line["values"].items():
            if not name.startswith(NOT_COMPARED):
                assert (line["step"], name) not in found
                found[line["step"], name] = value
    return found


@pytest.mark.parametrize(
    "objective", nightly_except([config.Clip(), config.Cloob(), config.Clip(mask_duplicates=True)], config.Cloob())
)
def test_runs_are_equal_whether_pictures_were_drawn_before_or_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: config.Objective
) -> None:
    choice = config.replace(replace(SMALL, objective=objective), "optimizer.epochs", "1")
    ahead: list[bool] = []
    measure = training.MetricLogger.measure_untrained

    def counted(logger: training.MetricLogger) -> None:
        ahead.append(True)
        measure(logger)

    monkeypatch.setattr(training.MetricLogger, "measure_untrained", counted)
    found = []
    for name in ("before", "after"):
        workspace = Workspace(tmp_path / name)
        if name == "before":
            data.scenes_folder(choice.data, workspace.folder, quiet)
        run = workspace.runs.create(choice)
        training.fit(workspace, run)
        # Once for the split of the curves, once for the other.
        assert len(ahead) == (2 if name == "after" and not objective.mask_duplicates else 0)
        snapshots = {(s.step, s.split): read_snapshot(s.folder) for s in workspace.results.snapshots(run)}
        numbers = {
            (e.step, e.split, name): e.metrics[name] for e in workspace.results.evaluations(run) for name in e.metrics
        }
        found.append((curves(workspace, run), snapshots, numbers, workspace.runs.get(run).facts["fingerprint"]))
    (lines, snapshots, numbers, print_), (others, theirs, also, other_print) = found
    assert lines == others
    assert numbers == also
    assert print_ == other_print
    assert snapshots.keys() == theirs.keys()
    assert any(step == 0 and split == "batch" for step, split in snapshots)
    for key, snapshot in snapshots.items():
        assert np.array_equal(snapshot.image, theirs[key].image)
        assert np.array_equal(snapshot.text, theirs[key].text)


def before_drawing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, of: str = "train") -> None:
    """Call a function right before the pictures of a split are drawn."""
    draw = writing._draw_split

    def draw_then(seed: int, split: str, *rest: object, **more: object) -> None:
        if split == of:
            act()
        draw(seed, split, *rest, **more)

    monkeypatch.setattr(writing, "_draw_split", draw_then)


def test_curves_and_maps_have_the_untrained_model_before_a_training_picture_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    run = workspace.runs.create(config.replace(SMALL, "optimizer.epochs", "1"))
    seen: list[tuple[set[str], set[int]]] = []

    def look() -> None:
        assert not is_drawn(folder_of(SMALL.data, tmp_path), "train")
        names = {name for step, name in curves(workspace, run) if step == 0}
        seen.append((names, {s.step for s in workspace.results.snapshots(run) if s.split == "renderings"}))

    before_drawing(monkeypatch, look)
    training.fit(workspace, run)
    (names, steps), *others = seen
    assert not others
    assert {"val/image_to_text_R@1", "val/loss", "combinations/matched_cosine"} <= names
    assert steps == {0}


def test_a_curve_has_its_first_point_before_the_second_split_is_drawn(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = workspace.runs.create(config.replace(SMALL, "optimizer.epochs", "1"))
    seen: list[set[str]] = []
    before_drawing(monkeypatch, lambda: seen.append({name for _, name in curves(workspace, run)}), of="combinations")
    training.fit(workspace, run)
    assert len(seen) == 1
    assert {"val/image_to_text_R@1", "val/loss"} <= seen[0]
    assert not any(name.startswith("combinations/") for name in seen[0])
    asked = workspace.runs.get(run).facts["heldout_questions"]
    assert asked.keys() == {"renderings", "combinations"}
    log = (workspace.runs.get(run).folder / "log.txt").read_text()
    evaluations = [part.partition(" step ")[0] for part in log.split(" step 0 of ")[1:]]
    assert ["unseen combinations" in lines for lines in evaluations] == [False, True]
    rows = re.findall(r"^ {10}(\S.*?) {2,}(\S+(?: %)?)$", evaluations[0], re.MULTILINE)
    labels = ["Validation loss", "Image to text R@1", "Image to text R@5", "Text to image R@1"]
    assert [label for label, _ in rows] == labels
    assert [text.endswith(" %") for _, text in rows] == [False, True, True, True], "units are said"
    assert len({len(line) for line in evaluations[0].splitlines() if line.strip().startswith((*labels,))}) == 1


@pytest.mark.nightly
def test_a_run_that_is_stopped_while_pictures_are_drawn_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path)
    run = workspace.runs.create(SMALL)
    before_drawing(monkeypatch, lambda: workspace.runs.ask(run, "stop"))
    training.fit(workspace, run)
    row = workspace.runs.get(run)
    assert (row.status, row.step) == ("stopped", 0)
    assert not is_drawn(folder_of(SMALL.data, tmp_path), "train")
    monkeypatch.undo()
    training.fit(workspace, run)
    assert workspace.runs.get(run).status == "finished"
    assert len([step for step, name in curves(workspace, run) if name == "val/loss" and step == 0]) == 1


def test_planned_pairs_are_those_that_are_drawn(tmp_path: Path) -> None:
    folder = data.scenes_folder(SMALL.data, tmp_path, quiet)
    for split in ("train", "renderings", "combinations"):
        assert planned_sources(SMALL.data, folder, split) == sources(folder, split)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, True), ({"objective.kind": "simclr"}, False), ({"objective.mask_duplicates": "true"}, False)],
)
def test_only_a_run_that_begins_without_training_pictures_is_measured_ahead(
    tmp_path: Path, changes: dict[str, str], expected: bool
) -> None:
    workspace, choice = Workspace(tmp_path), SMALL
    for field, value in changes.items():
        choice = (
            replace(choice, objective=config.SimClr()) if value == "simclr" else config.replace(choice, field, value)
        )
    with RunLog.claim(workspace, workspace.runs.create(choice)) as log:
        assert may_be_measured_ahead(choice, log) is expected


def results(workspace: Workspace, run: int) -> tuple[dict, ...]:
    """Return what a run has found: curves, evaluations, snapshots, the best checkpoint, and its weights."""
    snapshots = {(s.step, s.split): read_snapshot(s.folder) for s in workspace.results.snapshots(run)}
    kept = {row.step: row.best for row in workspace.results.checkpoints(run)}
    last, _ = checkpoint.newest(workspace.runs.get(run).folder / "checkpoints")
    return (
        curves(workspace, run),
        {(e.step, e.split): e.metrics for e in workspace.results.evaluations(run)},
        {key: (snapshot.image.tobytes(), snapshot.text.tobytes()) for key, snapshot in snapshots.items()},
        kept,
        {name: value.numpy().tobytes() for name, value in last.weights.items()},
    )


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, tuple[dict, ...]]:
    """Return a workspace with drawn pictures, and what a run found that was measured before its first update."""
    workspace = Workspace(tmp_path_factory.mktemp("at-once"))
    data.scenes_folder(SMALL.data, workspace.folder, quiet)
    run = workspace.runs.create(SMALL)
    training.fit(workspace, run)
    return workspace, results(workspace, run)


END = "as if the process had been killed"


@few_plain(3, "ended", ["", "killed after", "stop", "killed before", "save", "evaluate"])
def test_many_held_out_pairs_wait_for_the_first_updates_and_change_nothing(
    at_once: tuple[Workspace, tuple[dict, ...]], monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    workspace, expected = at_once
    monkeypatch.setattr(metric_logger, "FEW_MEASURED_FIRST", 0)
    monkeypatch.setattr(metric_logger, "FIRST_UPDATES", 3)
    run = workspace.runs.create(SMALL)
    at, update = {"killed before": 2, "killed after": 4}.get(ended, 1), TrainingSession.update
    asked: list[str] = []

    def watched(session: TrainingSession, *batch: object) -> object:
        if session.step == at and ended.startswith("killed"):
            raise SystemExit(END)
        made = update(session, *batch)
        if session.step == at and ended in ("stop", "save", "evaluate"):
            asked.append(ended)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(TrainingSession, "update", watched)
        patch.setattr(ControlFlags, "now", lambda _: asked.pop() if asked else None)
        with pytest.raises(SystemExit, match=END) if ended.startswith("killed") else contextlib.nullcontext():
            training.fit(workspace, run)
    if ended.startswith("killed") or ended == "stop":
        assert workspace.runs.get(run).step < 8
        training.fit(workspace, run)
    found = results(workspace, run)
    order = [step for step, name in found[0] if name in ("train/loss", "val/loss")]
    assert order.index(0) == (1 if ended in ("stop", "save", "evaluate") else 3)
    for mine, other in zip(found, expected, strict=True):
        # What was asked for is there besides.
        assert {key: value for key, value in mine.items() if key in other} == other
        assert len(mine) == len(other) or ended in ("stop", "save", "evaluate")
