"""The evidence bundle: complete, verifiable, and explicit about figures that could not be drawn."""

import dataclasses
import hashlib
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image
from sqlalchemy import Connection

from trainer import config
from trainer.__main__ import main
from trainer.analysis.progress import rising
from trainer.charts.figure_choices import FigureChoices
from trainer.cli import bundle
from trainer.config import default_paths
from trainer.distribution.bundle_files import USUAL
from trainer.errors import UserError
from trainer.render_mpl.files import NumberRows, write_csv, write_parquet
from trainer.store import Workspace, run_files

pytestmark = pytest.mark.slow

FIGURES = [["export", "curves", "--runs", "1", "2"], ["export", "similarity", "--runs", "77"]]


def test_a_figure_can_be_left_out_of_a_bundle_and_of_its_page(charted: Workspace, tmp_path: Path, monkeypatch, capsys):
    asked: list[object] = []
    monkeypatch.setattr("trainer.cli.report.write_report", lambda *_a, **more: asked.append(more["without"]))
    out, without = tmp_path / "b", [*(kind for kind in USUAL if kind != "curves")]
    where = ["--workspace", str(charted.folder)]
    assert main(["bundle", "--runs", "1", "--without", *without, "--out", str(out), *where]) == 0
    assert {file.stem for file in (out / "figures").iterdir()} == {"01-curves"}
    lines = (out / "commands.sh").read_text().splitlines()
    assert lines[-1] == f"trainer report 1 --without {' '.join(without)} --out report.html"
    assert asked == [without]
    capsys.readouterr()
    assert main(["bundle", "--runs", "1", "--without", "maps", "--out", str(tmp_path / "c"), *where]) != 0
    assert "Leave out some of: curves, similarity, map" in capsys.readouterr().err


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the report, which has its own tests."""

    def page(_workspace: Workspace, _runs: object, out: Path, **_more: object) -> dict[str, str]:
        out.write_text("<html>", encoding="utf-8")
        return {"report": str(out)}

    monkeypatch.setattr("trainer.cli.report.write_report", page)


def test_a_bundle_holds_figures_numbers_runs_versions_and_commands(
    charted: Workspace, tmp_path: Path, quick: None
) -> None:
    told: list[float] = []
    out = tmp_path / "e.zip"
    values = bundle.write_bundle(
        charted, [1, 2], out, main, figures=FIGURES, progress=lambda share, _: told.append(share)
    )
    assert told == sorted(told)
    assert told[-1] == 1.0
    with zipfile.ZipFile(out) as archive:
        names = set(archive.namelist())
        assert {f"figures/01-curves.{kind}" for kind in bundle.KINDS} <= names
        assert {"report.html", "README.txt", "commands.sh", "environment.json", "bundle.json"} <= names
        assert sum(name.endswith("config.toml") for name in names) == 2
        for name, digest in json.loads(archive.read("bundle.json"))["sha256"].items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == digest
        assert "numpy" in json.loads(archive.read("environment.json"))["packages"]
        lines = archive.read("commands.sh").decode()
        archive.extract("figures/01-curves.parquet", tmp_path)
        rows = archive.read("figures/01-curves.csv").decode().count("\n") - 1
    assert "trainer export curves --runs 1 2 --out figures/01-curves.svg" in lines
    table = pq.read_table(tmp_path / "figures/01-curves.parquet")
    assert table.num_rows == rows
    assert b"trainer export curves" in table.schema.metadata[b"command"]
    (missing,) = values["not_drawn"]
    assert "77" in missing["problem"]
    assert [run["seed"] for run in values["runs"]] == [0, 0]


def test_the_commands_of_a_bundle_run_where_it_was_unpacked(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures that were dropped on the window are in it; a stand-in for `trainer` notes what the script runs."""
    pictures = [tmp_path / name / "my cat.png" for name in ("one", "two")]
    for picture in pictures:
        picture.parent.mkdir()
        Image.new("RGB", (64, 64), "red").save(picture)
    words = ["--runs", "1", "--labels", "red", "blue"]
    figures = [["classify", *map(str, pictures), *words], ["classify", str(pictures[0]), *words]]
    sample = Workspace(default_paths.sample_workspace())
    values = bundle.write_bundle(sample, [1], tmp_path / "b.zip", main, figures=figures)
    assert values["not_drawn"] == []
    unpacked = tmp_path / "there"
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        archive.extractall(unpacked)
    for picture in pictures:
        picture.unlink()
    tool = tmp_path / "bin" / "trainer"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@" END >> ran.txt\n', encoding="utf-8")
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "commands.sh"], cwd=unpacked, env=environment, check=True)
    first, second, report = (
        part.strip("\n").split("\n") for part in (unpacked / "ran.txt").read_text().removesuffix("END\n").split("END\n")
    )
    assert report[0] == "report"
    assert first[1:3] == ["inputs/my cat.png", "inputs/1-my cat.png"]
    assert second[1] == "inputs/my cat.png"
    monkeypatch.chdir(unpacked)
    made = [Path(word) for word in second if word.startswith("figures/")]
    for file in made:
        file.unlink()
    assert main([*second, "--workspace", str(sample.folder)]) == 0
    assert all(file.is_file() for file in made)


def test_a_bundle_tells_neither_the_computer_nor_paths_of_the_user(
    charted: Workspace, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = "/home/ada.lovelace"
    document = run_files.run_document
    session = {"host": "adas-computer", "command": [f"{user}/.venv/bin/python", "-m", "trainer", f"--data={user}/x"]}

    def told(connection: Connection, run: int) -> dict:
        return document(connection, run) | {"reason": f"{user}/x is gone", "facts": {"sessions": [session]}}

    monkeypatch.setattr(run_files, "run_document", told)
    data = dataclasses.replace(charted.runs.config_of(1), data=config.Folder(path=f"{user}/pictures"))
    monkeypatch.setattr(type(charted.runs), "config_of", lambda _self, _run: data)
    figures = [["export", "map", "--runs", "1", "--title", f"{user}/x"], ["export", "nothing", f"{user}/y"]]
    bundle.write_bundle(charted, [1], tmp_path / "b", main, figures=figures)
    for file in (tmp_path / "b").rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        content += str(pq.read_table(file).to_pydict()).encode() if file.suffix == ".parquet" else b""
        for secret in ("ada.lovelace", "adas-computer", str(charted.folder), str(tmp_path)):
            assert secret.encode() not in content, file
    assert 'path = "pictures"' in (tmp_path / "b/runs" / charted.runs.get(1).folder.name / "config.toml").read_text()


@pytest.mark.nightly
def test_a_live_bundle_has_a_page_to_zoom_into(charted: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "live.zip"
    bundle.write_bundle(charted, [1], file, main, figures=[], live=True)
    with zipfile.ZipFile(file) as archive:
        page = archive.read("report.html").decode()
        assert "trainer report 1 --live --out report.html" in archive.read("commands.sh").decode()
    assert 'id="live-data"' in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_folder_that_is_there_and_commands_that_do_more_than_draw_are_refused(
    charted: Workspace, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="there already"):
        bundle.write_bundle(charted, [1], tmp_path / "full", main, figures=[])
    list_file = tmp_path / "figures.json"
    words = ["bundle", "--runs", "1", "--out", str(tmp_path / "x"), "--workspace", str(charted.folder)]
    for content in ('[["runs", "delete", "1"]]', '[["export", "map", "--out", "x"]]', '"export"', "[[]]", "no"):
        list_file.write_text(content, encoding="utf-8")
        assert main([*words, "--figures", str(list_file)]) == 2
    assert not (tmp_path / "x").exists()
    bundle.write_bundle(charted, [1], tmp_path / "new", main, figures=[])
    assert (tmp_path / "new" / "bundle.json").is_file()


def test_a_cancelled_bundle_leaves_nothing(charted: Workspace, tmp_path: Path, quick: None) -> None:
    def stop(share: float, _note: str) -> None:
        if share > 0:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        bundle.write_bundle(charted, [1], tmp_path / "e.zip", main, figures=FIGURES[:1], progress=stop)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\uff1d1+1"])
def test_no_text_of_a_table_is_a_formula(tmp_path: Path, text: str) -> None:
    table = NumberRows((text, "n"), [(text, -1.5), ("plain", 2.0)])
    write_csv(tmp_path / "t.csv", table)
    lines = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    assert [line.partition(",")[0].lstrip('"') for line in lines[:2]] == [f"'{text}"] * 2
    assert lines[1].endswith("-1.5"), "a number stays a number"
    write_parquet(tmp_path / "t.parquet", table)
    assert pq.read_table(tmp_path / "t.parquet").column("n").to_pylist() == [-1.5, 2.0]


def test_numbers_beside_words_stay_numbers(tmp_path: Path) -> None:
    table = NumberRows(("where", "much"), [("a", 1.5), (2, "1.6 %"), (3, None)])
    write_parquet(tmp_path / "t.parquet", table)
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {
        "where": [None, 2, 3],
        "where_text": ["a", None, None],
        "much": [1.5, None, None],
        "much_text": [None, "1.6 %", None],
    }


def test_words_beside_numbers_take_the_place_of_no_other_column(tmp_path: Path) -> None:
    table = NumberRows(("n", "n_text", "n_text_text"), [(1, "b", "c"), ("a", 2, "d")])
    write_parquet(tmp_path / "t.parquet", table)
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == {
        "n": [1, None],
        "n_text_text_text": [None, "a"],
        "n_text": [None, 2],
        "n_text_text_text_text": ["b", None],
        "n_text_text": ["c", "d"],
    }


def test_a_bundle_without_an_evaluation_says_why_it_has_no_report(charted: Workspace, tmp_path: Path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise UserError("Nothing to compare.")

    monkeypatch.setattr("trainer.cli.report.write_report", refuse)
    values = bundle.write_bundle(charted, [1], tmp_path / "folder", main, figures=[])
    assert [(each["name"], each["problem"]) for each in values["not_drawn"]] == [("report", "Nothing to compare.")]
    assert "# not written (Nothing to compare.)" in (tmp_path / "folder" / "commands.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        (["export", "toy-batch"], "toy-batch"),
        (["export", "map", "--runs", "1", "--color", "label"], "map-label"),
        (["classify", "/home/me/my cat.png", "--runs", "1"], "classify-my_cat"),
        (["saliency", "--json"], "saliency"),
    ],
)
def test_figures_are_named_by_what_they_show(command: list[str], stem: str):
    assert bundle.figure_stem(command) == stem


def test_choices_hold_for_figures_without_choices_of_their_own():
    choices = FigureChoices(panels=("cosines",), width="1", names="letters")
    assert bundle.with_choices(["export", "map", "--names", "seed"], choices) == [
        *("export", "map", "--names", "seed", "--width", "1")
    ]
    assert bundle.with_choices(["saliency", "1"], choices) == ["saliency", "1"]


def test_progress_never_falls():
    told: list[float] = []
    report = rising(lambda share, _note: told.append(share))
    for share in (0.14, 0.48, 0.0, 1.0, 0.98):
        report(share, "")
    assert told == [0.14, 0.48, 0.48, 1.0, 1.0]
