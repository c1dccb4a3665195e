"""Every headless command on a copy of a workspace that is not this user's own: not one byte of it changes."""

import argparse
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import trainer.cli
from tests.builders import writable_copy
from tests.journeys.test_walk_commands import FIGURES, OF_AN_EXPERIMENT, OF_NO_RUN
from trainer.__main__ import _modules_of, argument_parser, main
from trainer.experiments.experiment import clip_and_cloob, to_toml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

DONE, REFUSED, KEPT, OTHERWISE = "done", "refused", "kept", "refused for another reason"
"""It does its work; it says that the workspace is look only; it stores what it was called to store."""
OPTIONS = {
    **{("export", kind): ("--runs", "1", "2", *words) for kind, words in FIGURES.items()},
    **{("export", kind): words for kind, words in OF_NO_RUN.items()},
    **{("export", kind): ("--experiment", "asked") for kind in OF_AN_EXPERIMENT},
    ("export", "pair"): ("--runs", "1", "2", "--row", "3"),
}
"""Of the figures; what `analyze` asks is the same without `--runs`."""
WORDS: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {
    ("ablation",): (("--queue", REFUSED),),
    ("bundle",): (("1 2 --out {out}.zip", DONE),),
    ("classify",): (("{picture} --runs 1 2 --labels circle square", DONE),),
    ("compare",): (("1 2", DONE),),
    ("data-efficiency",): (("--queue", REFUSED),),
    ("data", "scenes"): (("--train-pairs 64 --heldout-pairs 16", REFUSED),),
    ("data", "show"): (("--data {table}", DONE),),
    ("data", "duplicates"): (("--data {table}", DONE),),
    ("data", "quality"): (("1", REFUSED),),
    ("data", "review"): (("1", DONE), ("1 --flag k", OTHERWISE), ("1 --clear k", OTHERWISE)),
    ("data", "cleaned"): (("1", REFUSED),),
    ("data", "helped"): (("1 2", DONE),),
    ("decode",): (
        ("3 --image {picture} --steps 2", DONE),
        ("3 --text circle --steps 2 --out {out}.svg", DONE),
        ("3 --measure --most 8 --steps 2", DONE),
    ),
    ("demo",): (("", REFUSED),),
    ("doctor",): (("", DONE), ("--check", DONE), ("--clean", REFUSED), ("--restore", REFUSED)),
    ("embed",): (("1 --images {picture} --out {out}", DONE), ("1 --data {table} --out {out}-set", DONE)),
    ("energy",): (("", DONE),),
    ("evaluate",): (("1", DONE), ("1 --task retrieval", KEPT)),
    ("experiment",): (
        *(("", DONE), ("run asked", REFUSED), ("stop asked", REFUSED), ("show asked", DONE)),
        *(("new {definition}", REFUSED), ("run {definition} --queue", REFUSED)),
        ("repeat 1 --set objective.inv_tau=10,20", REFUSED),
    ),
    ("fit",): (("--preset clip-scenes", REFUSED), ("--preset decoder-scenes --of 1", REFUSED)),
    ("generative",): (("1 2 --updates 1 --most 4 --size 8", DONE),),
    ("independent",): (("1", OTHERWISE),),
    ("open",): (("vectors --image {vectors}", REFUSED), ("list", DONE)),
    ("places", "list"): (("", DONE),),
    ("places", "mirror"): (("nowhere --once", OTHERWISE),),
    ("places", "follow"): (("1", REFUSED),),
    ("places", "fetch"): (("1 --step 1", REFUSED),),
    ("queue",): (
        *(("", DONE), ("add --preset clip-scenes", REFUSED), ("move 4 --to 1", REFUSED), ("hold", REFUSED)),
        *(("slots --cpu 2", REFUSED), ("remove 4", REFUSED), ("set 4 --priority 2", REFUSED), ("go", REFUSED)),
        ("run", REFUSED),
    ),
    ("replay",): (("1 --step 12", REFUSED),),
    ("report",): (("1 2 --out {out}.html", DONE), ("1 2 --live --out {out}.html", DONE)),
    ("resume",): (("1", OTHERWISE), ("1 --step 12 --as branch", REFUSED)),
    ("runs", "list"): (("", DONE),),
    ("runs", "show"): (("1", DONE),),
    ("runs", "rename"): (("1 x", REFUSED),),
    ("runs", "note"): (("1 x", REFUSED),),
    ("runs", "tag"): (("1 --add x", REFUSED),),
    **{("runs", action): (("1", REFUSED),) for action in ("archive", "unarchive", "delete", "restore", "purge")},
    **{("runs", action): (("1", OTHERWISE),) for action in ("pause", "resume", "save", "evaluate")},
    ("runs", "import"): (("{run}", REFUSED),),
    ("runs", "export"): (("1 --format safetensors --out {out}", DONE),),
    ("saliency",): (("1 --image {picture} --caption circle --grid 3", DONE),),
    ("selections",): (("", DONE), ("keep mine --run 1 --rows 0 1", KEPT), ("delete mine", KEPT)),
    ("stop",): (("1", DONE),),
    ("watch",): (("{training} --once", REFUSED),),
}
"""Command -> the words after it, and what becomes of it. `{out}` lies outside of the workspace."""
ELSEWHERE = {
    ("mcp",): "runs the commands above",
    ("bench",): "measures the device: tests/trainer/training/test_gpu_bench.py",
    ("install",): "installs torch for the user",
    ("serve",): "asks what the window asks: tests/explorer/test_look_only.py",
    ("preview",): "draws what the window asks: tests/trainer/render_mpl/test_figure_choices.py",
    ("remote",): "is spoken to by another computer: tests/trainer/places",
    ("places", "add"): "writes settings of the user, not of a workspace",
    ("places", "install"): "needs another computer: tests/trainer/places",
    ("places", "remove"): "writes settings of the user, not of a workspace",
    ("places", "test"): "needs another computer: tests/trainer/places",
}


def _leaves() -> Iterator[tuple[str, ...]]:
    """Yield every command that does something, as its words."""

    def below(words: tuple[str, ...], parser: argparse.ArgumentParser) -> Iterator[tuple[str, ...]]:
        groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if not groups:
            yield words
        for group in groups:
            for name, choice in group.choices.items():
                yield from below((*words, name), choice)

    for name in _modules_of(trainer.cli):
        (commands,) = (
            action for action in argument_parser([name])._actions if isinstance(action, argparse._SubParsersAction)
        )
        yield from below((name,), commands.choices[name])


LEAVES = sorted(_leaves())


@pytest.fixture(scope="module")
def foreign(two_runs, tmp_path_factory) -> Path:
    """Return the copy of a workspace with two runs, a decoder, a run that waits, and something of each kind kept."""
    folder = tmp_path_factory.mktemp("foreign")
    original = writable_copy(two_runs.workspace, folder / "original")
    small = (
        "optimizer.batch_size=8",
        "objective.size=16",
        "objective.width=8",
        "objective.prior_width=16",
        "optimizer.epochs=1",
    )
    commands = [
        ["fit", "--preset", "decoder-scenes", "--of", "1", *(word for one in small for word in ("--set", one))],
        ["queue", "add", "--preset", "clip-scenes"],
        ["selections", "keep", "theirs", "--run", "1", "--rows", "0", "3"],
        ["evaluate", "1", "2", "--task", "zero_shot"],
        ["data", "quality", "1"],
        ["replay", "1", "--step", "12"],
    ]
    for words in commands:
        assert main([*words, "--workspace", str(original.folder)]) == 0, words
    original.experiments.add("asked", to_toml(clip_and_cloob(None)))
    original.close()
    _move_journal(original.database_file)
    shutil.copytree(original.folder, folder / "copy")
    return folder / "copy"


def _move_journal(database: Path) -> None:
    """Move what the journal holds into the database, as whoever closes a database last does, at no certain time."""
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)


def _state(folder: Path) -> dict[str, object]:
    """Return what every change of a file changes; what is in the journal of the database counts as its content.

    Nobody can turn back the time of a change of a file (`st_ctime_ns`), so their bytes need not be read.
    """
    _move_journal(folder / "explorer.db")
    found: dict[str, object] = {"explorer.db": (folder / "explorer.db").read_bytes()}
    for path in sorted(folder.rglob("*")):
        if not path.name.startswith("explorer.db"):
            kept = path.lstat()
            changed = (kept.st_ino, kept.st_size, kept.st_mtime_ns, kept.st_ctime_ns) if path.is_file() else None
            found[path.relative_to(folder).as_posix()] = changed
    return found


def _calls(leaf: tuple[str, ...]) -> list[tuple[list[str], str]]:
    """Return the words after the command, and what becomes of it."""
    outcome = OTHERWISE if leaf[1:] == ("experiment-curves",) else DONE  # no run of the experiment has logged anything
    if leaf[0] == "export":
        return [([*OPTIONS[leaf], "--out", "{out}.svg", "{out}.csv"], outcome)]
    if leaf[0] == "analyze":
        words = OPTIONS.get(("export", leaf[1]), ("--runs", "1", "2"))
        return [([word for word in words if word != "--runs"], outcome)]
    return [(words.split(), outcome) for words, outcome in WORDS[leaf]]


def test_every_command_is_walked_or_has_a_reason() -> None:
    figures = {leaf for leaf in LEAVES if leaf[0] in ("export", "analyze")}
    assert {*LEAVES} - figures == {*WORDS, *ELSEWHERE}
    assert {leaf for leaf in figures if leaf[0] == "export"} == {*OPTIONS} - {("export", "pair")}


ALWAYS = {("export", "curves"), ("export", "map"), ("analyze", "geometry")}
"""Of the figures and analyses, which all open and close the workspace by the same code."""


def _seldom(leaf: tuple[str, ...]) -> bool:
    """Return whether it takes long, and reads what others of the plain suite read."""
    return (leaf[0] in ("analyze", "export") and leaf not in ALWAYS) or leaf in (
        ("bundle",),
        ("generative",),
        ("report",),
    )


@pytest.mark.parametrize(
    "leaf",
    [
        pytest.param(leaf, id=" ".join(leaf), marks=[pytest.mark.nightly] if _seldom(leaf) else [])
        for leaf in LEAVES
        if leaf not in ELSEWHERE
    ],
)
def test_a_command_changes_nothing_that_is_somebody_elses(
    leaf: tuple[str, ...],
    foreign: Path,
    two_runs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    faults,
    umap_as_pca: None,
) -> None:
    np.save(tmp_path / "vectors.npy", np.eye(6, dtype=np.float32))
    np.save(tmp_path / "points.npy", np.zeros((48, 2), np.float32))
    (tmp_path / "new.toml").write_text(to_toml(clip_and_cloob(None)), encoding="utf-8")
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "metrics.csv").write_text("epoch,step,train_loss\n0,1,2.0\n")
    files = {"picture": two_runs.pictures[0], "table": two_runs.table, "run": next(foreign.glob("runs/0001-*"))}
    files |= {
        "definition": tmp_path / "new.toml",
        "vectors": tmp_path / "vectors.npy",
        "points": tmp_path / "points.npy",
        "training": tmp_path / "training",
        "out": tmp_path / "out",
    }
    tried = 0
    for words, outcome in _calls(leaf):
        before, tried = _state(foreign), tried + 1
        named = [word.format(**files) for word in words]
        status = main([*leaf, *named, "--workspace", str(foreign)])
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        assert (status == 0) == (outcome not in (REFUSED, OTHERWISE)), (words, told.err[-500:])
        if outcome == REFUSED:
            assert status == 2, words
            assert "look only" in told.err, words
        if outcome != KEPT:
            assert _state(foreign) == before, words
    faults.row("S3", "every command, on a copy", "not one byte of it changed", tried, tried)
