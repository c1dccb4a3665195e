"""Poisoned JSON in a stranger's run folder and caches: a sentence or nothing, never a traceback."""

import contextlib
import io
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from explorer.views.quality.load import load_quality
from trainer import config
from trainer.__main__ import main
from trainer.analysis.progress import silent
from trainer.data import load
from trainer.data.stored_pairs import StoredPair, kept
from trainer.errors import UserError
from trainer.store import Items, RunLog, Workspace, read_snapshot, write_snapshot
from trainer.store.quality_reports import KINDS, Measured, QualityFinding, QualityReport, write_quality
from trainer.store.replay_records import ReplayRecord, read_replay, write_replay
from trainer.store.task_records import TaskRecord, evaluation_folder, read_records, write_task

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3_600)]

VALUES = (
    *(math.inf, -math.inf, math.nan, 1e300, 10**30, -1, 0, True, None),
    *("x", "\ud800", "\x1b]0;x\x07\n", "9" * 5000, "../../x", "/etc/passwd"),
    *([], {}, [[[[]]]], [None], ["\ud800"] * 8, {"a": {"b": math.inf}}, [10**9, -1]),
)


def poisoned(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what was changed, and the document with one value replaced, also one level below."""
    yield "a list", [document]
    for key, old in document.items():
        yield f"no {key}", {name: value for name, value in document.items() if name != key}
        for value in VALUES:
            words = f"{key} = {value!r:.40}"
            yield words, {**document, key: value}
            if isinstance(old, list) and old:
                yield f"first of {words}", {**document, key: [value, *old[1:]]}
            if isinstance(old, dict):
                yield from ((f"{key}.{sub}: {words}", {**document, key: {**old, sub: value}}) for sub in old)


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with a run that has a snapshot, a replay and an evaluation, and with caches."""
    folder = tmp_path_factory.mktemp("poisoned") / "space"
    workspace = Workspace(folder)
    rows = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    paths, words = [f"p{i}" for i in range(8)], ["c"] * 8
    with RunLog.claim(workspace, workspace.runs.create(config.Run(name="one"), status="stopped")) as log:
        log.scalars(1, {"train/loss": 1.0})
        snapshot = log.folder / "snapshots" / "s-x@000001"
        items = Items(np.arange(8), paths, words, ["a", "b"] * 4, ["x"] * 8)
        write_snapshot(snapshot, image=rows, text=rows, items=items, step=1, dataset="s", split="x", model="one")
        log.snapshot(1, "s", "x", snapshot, 8, 4)
        both, lines = (rows, rows), np.ones((2, 8))
        likely = ((0, 1, 0.5, 0.9, "why"),)
        told = (tuple(words), tuple(paths), ("own", "clip"), lines, (1.0, 0.5), both, both, likely)
        write_replay(log.folder, ReplayRecord(1, 0, 2, 0.5, *told))
        finding = QualityFinding("mispair", "x", 0, ("k",), "p0", "c", "a", (-3.0,), ((4, 5),), "p1", "d")
        measured = Measured(1, "one", 1, {"x": 0.1}, {"x": 0.2}, {"x": -2.0})
        counts = {kind: {"x": 1} for kind in KINDS}
        write_quality(log.folder, QualityReport("s", 1.0, (measured,), {"x": 8}, {"x": 8}, counts, (finding,)))
        arrays = {"path": np.array(paths), "right": np.ones(8, bool)}
        arrays |= {"label": np.array([0, 1] * 4), "predicted": np.array([0, 1] * 4)}
        details = {"classes": ["a", "b"], "captions": 8, "fingerprint": "f"}
        record = TaskRecord("zero_shot", {"zero_shot_acc1": 0.5}, 8, 8, details, arrays)
        write_task(evaluation_folder(log.folder, "s", "x", 1), record)
        log.status("stopped")
    workspace.close()
    (snapshot / "manifest.json").unlink()  # as of an older version: what is changed here is not a flipped bit
    return folder


def _command(space: Path, *words: str) -> Callable[[], object]:
    return lambda: main([*words, "--workspace", str(space)])


def _only_sentences(act: Callable[[], object]) -> str:
    """Return what was raised that is no sentence for a person."""
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            act()
    except (UserError, SystemExit):
        return ""
    except Exception as error:
        return repr(error)
    return ""


def _wrong(file: Path, acts: list[Callable[[], object]], every: int) -> tuple[int, list[tuple[str, str]]]:
    before = file.read_text(encoding="utf-8")
    cases = list(poisoned(json.loads(before)))[::every]
    wrong = []
    for what, document in cases:
        file.write_text(json.dumps(document), encoding="utf-8")
        wrong += [(what, said) for act in acts if (said := _only_sentences(act))]
    file.write_text(before, encoding="utf-8")
    assert not any(map(_only_sentences, acts))
    return len(cases), wrong


def test_poisoned_results_of_a_run(space: Path, tmp_path: Path, faults) -> None:
    run = next((space / "runs").iterdir())
    out = [str(tmp_path / name) for name in ("a.csv", "a.parquet", "a.svg")]
    drawn = {
        "snapshots/s-x@000001/snapshot.json": [
            lambda: read_snapshot(run / "snapshots/s-x@000001"),
            _command(space, "export", "map", "--runs", "1", "--out", out[0]),
        ],
        "replays/step_000001.json": [
            lambda: read_replay(run, 1),
            _command(space, "export", "replayed-step", "--runs", "1", "--out", *out),
            _command(space, "analyze", "replayed-step", "1", "--json"),
        ],
        "quality/run_0001_step_000001.json": [
            lambda: load_quality(Workspace(space), [(1, None)], None),
            _command(space, "data", "review", "1", "--flag-suspected", "mispair", "--json"),
            _command(space, "data", "review", "1", "--flag", "k"),
        ],
        "evaluations/s-x@000001/zero_shot.json": [
            lambda: read_records(run / "evaluations/s-x@000001"),
            _command(space, "export", "evaluation", "--runs", "1", "--out", out[0]),
        ],
    }
    tried, wrong = 0, []
    for name, acts in drawn.items():
        n, found = _wrong(run / name, acts, faults.every(11))
        tried, wrong = tried + n, wrong + found
    faults.row(
        "S5",
        "a value of any type in the JSON of a snapshot, replay, evaluation or data check",
        "named",
        tried,
        tried - len(wrong),
    )
    assert tried > 300 / faults.part
    assert not wrong, wrong[:12]


def test_poisoned_layouts_are_made_again(space: Path, faults) -> None:
    from trainer.projection import layout_file

    folder = next((space / "runs").iterdir()) / "snapshots/s-x@000001"
    made = layout_file(space, folder)
    facts = made.file.with_suffix(".json")

    def again() -> None:
        found = layout_file(space, folder)
        assert (found.images, found.texts, found.fitted <= 16) == (made.images, made.texts, True)

    tried, wrong = 0, []
    before = facts.read_text()
    for what, document in list(poisoned(json.loads(before)))[:: faults.every(11)]:
        facts.write_text(json.dumps(document))
        tried += 1
        wrong += [(what, said)] if (said := _only_sentences(again)) else []
    faults.row(
        "S5", "a value of any type in the facts of a layout", "found sound or made again", tried, tried - len(wrong)
    )
    assert not wrong, wrong[:12]


def test_poisoned_caches_of_images(tmp_path: Path, faults) -> None:
    pictures, space = tmp_path / "pictures", tmp_path / "space"
    pictures.mkdir()
    for i in range(6):
        Image.new("RGB", (8, 8), (40 * i, 0, 0)).save(pictures / f"{i}.png")
        (pictures / f"{i}.txt").write_text(f"picture {i}")
    data = config.Folder(path=str(pictures))
    options = {"image_size": 16, "workspace_folder": space, "progress": silent}
    load(data, **options)
    caches = list((space / "cache").glob("*/prepared.json"))
    tried, wrong = 0, []
    for file in caches:
        n, found = _wrong(file, [lambda: load(data, **options)], faults.every(11))
        tried, wrong = tried + n, wrong + found
    pair = StoredPair("a.png", (pictures / "0.png").read_bytes(), ("a caption",), "a label")
    folder = tmp_path / "kept"
    kept(folder, lambda: [pair])
    n, found = _wrong(folder / "pairs.json", [lambda: kept(folder, lambda: [pair])], faults.every(5))
    tried, wrong = tried + n, wrong + found
    faults.row("S5", "a value of any type beside prepared images", "used or named", tried, tried - len(wrong))
    assert not wrong, wrong[:12]
