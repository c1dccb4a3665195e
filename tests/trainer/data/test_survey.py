"""The contents of a folder, table or tar: every item used or reported, by the command and the window."""

import csv
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.builders import add_members
from trainer import config
from trainer.__main__ import main
from trainer.data.survey import answer_read_data, report_lines, survey
from trainer.format_detection import columns_of, recognize
from trainer.messages import ReadData, answer_line

pytestmark = pytest.mark.slow


def _png(place: Path, number: int = 0) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((20, 30, 3), number % 255, np.uint8)).save(place)
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return 24 valid pairs; one damaged, one without caption, one with alpha; and an unsupported phone file."""
    root = tmp_path / "pictures"
    for number in range(24):
        _png(root / f"{number:02}.png", number).with_suffix(".txt").write_text(f"gray {number}")
    (root / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (root / "broken.txt").write_text("a broken one")
    _png(root / "silent.png")
    Image.new("RGBA", (9, 9), (255, 0, 0, 9)).save(root / "thin.png")
    (root / "thin.txt").write_text("a thin red")
    (root / "phone.heic").touch()
    return root


def _read(data: config.Data, tmp_path: Path, *, opened: bool):
    where = tmp_path / "workspace"
    return survey(data, image_size=16, workspace_folder=where, opened=opened, progress=lambda share, note: None)


def test_listing_opens_no_picture_and_opening_names_every_one(folder: Path, tmp_path: Path) -> None:
    listed = _read(recognize(folder), tmp_path, opened=False)
    assert (listed.found, listed.used) == (28, 26)
    assert [item for item, _ in listed.problems] == ["phone.heic", "silent.png"]
    assert listed.passed_over == {}
    assert listed.bytes_needed == 26 * 16 * 16 * 3
    assert len(listed.pictures) == 27
    assert not (tmp_path / "workspace" / "cache").exists()
    opened = _read(recognize(folder), tmp_path, opened=True)
    assert (opened.found, opened.used) == (28, 25)
    assert opened.used == sum(opened.pairs.values())
    assert {item for item, _ in opened.problems} == {"phone.heic", "silent.png", "broken.png"}
    assert opened.remarks == [("thin.png", "Transparent parts are composited on white.")]
    assert [line[:2] for line in report_lines(opened)][-1] == ("thin.png", "used with a warning")


def test_ten_pairs_are_spread_over_all_classes(tmp_path: Path) -> None:
    for name in "abcde":
        for number in range(40):
            _png(tmp_path / "kinds" / name / f"{number}.png", number)
    listed = _read(recognize(tmp_path / "kinds"), tmp_path, opened=False)
    assert len(listed.examples) == 10
    assert {example.label for example in listed.examples} == set("abcde")
    opened = _read(recognize(tmp_path / "kinds"), tmp_path, opened=True)
    assert {example.label for example in opened.examples} == set("abcde")
    assert all(example.item == f"{example.label}/{Path(example.path).name}" for example in opened.examples)


def test_a_license_beside_the_folders_of_classes_changes_nothing(tmp_path: Path) -> None:
    for number in range(12):
        _png(tmp_path / "kinds" / "ab"[number % 2] / f"{number}.png", number)
    (tmp_path / "kinds" / "LICENSE").touch()
    assert isinstance(recognize(tmp_path / "kinds"), config.ClassFolder)
    for number in range(12):
        _png(tmp_path / "kinds" / f"{number}.png", number)
    assert isinstance(recognize(tmp_path / "kinds"), config.Folder)


def test_pictures_without_captions_are_all_named_and_can_be_classified(tmp_path: Path) -> None:
    for number in range(5):
        _png(tmp_path / "bare" / f"{number}.png", number)
    found = _read(recognize(tmp_path / "bare"), tmp_path, opened=False)
    assert (found.used, len(found.problems), len(found.pictures)) == (0, 5, 5)
    assert "no pair to train on" in found.trouble


@pytest.mark.parametrize("rows", [1, 2])
def test_pairs_that_are_all_held_out_are_counted(rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _png(tmp_path / "one.png")
    table = tmp_path / "tiny.csv"
    table.write_text("filepath,title\n" + "".join(f"one.png,words {row}\n" for row in range(rows)) + "one.png,\n")
    found = _read(recognize(table), tmp_path, opened=True)
    assert (found.found, found.used, found.pairs) == (rows + 1, rows, {"train": 0, "heldout": rows})
    assert main(["data", "show", "--data", str(table), "--workspace", str(tmp_path / "workspace")]) != 0
    told = capsys.readouterr()
    assert f"{rows} pair{'s' * (rows > 1)} held out, none to train on; 1 not used." in told.out
    assert f"no pair to train on: {'the only one is' if rows == 1 else 'all 2 are'} held out" in told.err


def test_where_no_picture_can_be_read_each_is_still_named(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / "bad" / f"{number}.png").parent.mkdir(exist_ok=True)
        (tmp_path / "bad" / f"{number}.png").write_bytes(b"no picture")
        (tmp_path / "bad" / f"{number}.txt").write_text("words")
    found = _read(recognize(tmp_path / "bad"), tmp_path, opened=True)
    assert found.trouble
    assert {item for item, _ in found.problems} >= {"0.png", "1.png"}
    assert found.found == len(found.problems)


def test_a_table_says_its_columns_also_when_the_wrong_ones_are_chosen(folder: Path, tmp_path: Path) -> None:
    lines = "".join(f"{folder}/{number:02}.png;picture-{number}\n" for number in range(24))
    table = tmp_path / "table.csv"
    table.write_text(f"bild;satz\n{lines}{folder}/00.png;\n", encoding="utf-8")
    wrong = _read(recognize(table), tmp_path, opened=False)
    assert wrong.columns == ["bild", "satz"]
    assert "unclear which column of table.csv holds its captions" in wrong.trouble
    right = _read(config.Table(path=str(table), image_column="bild", caption_column="satz"), tmp_path, opened=True)
    assert (right.trouble, right.used, right.found) == ("", 24, 25)
    assert right.problems[0][1] == "Its caption is empty."
    assert columns_of(table, ",") == ["bild;satz"]


def test_a_tar_is_read_in_place(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for number in range(12):
            made = io.BytesIO()
            Image.new("RGB", (8, 8), (number, 0, 0)).save(made, "PNG")
            add_members(tar, ((f"{number:02}.png", made.getvalue()), (f"{number:02}.txt", b"red")))
    found = _read(recognize(tmp_path / "0.tar"), tmp_path, opened=True)
    assert (found.used, found.examples[0].item) == (12, "0.tar/00.png")


def test_the_command_and_the_question_tell_the_same(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace, report = tmp_path / "workspace", tmp_path / "report.csv"
    command = ["data", "show", "--data", str(folder), "--image-size", "16", "--report", str(report), "--json"]
    assert main([*command, "--workspace", str(workspace)]) == 1
    shown = json.loads(capsys.readouterr().out)
    question = ReadData(path=str(folder), image_size=16, opened=True)
    answer = answer_read_data(question, workspace, lambda share, note: None)
    for name in ("bytes_free", "problems", "other_parts", "remarks"):
        shown.pop(name)
    plain = json.loads(answer_line(1, answer))["answer"]
    for name in shown.keys() - {"suite", "fingerprints"}:
        assert plain[name] == shown[name]
    assert shown["recognized"]["kind"] == "folder"
    with report.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    lines = [json.loads(line) for line in Path(answer.report).read_text(encoding="utf-8").splitlines()]
    assert rows == [["item", "what", "reason"], *lines]
    assert (answer.not_used, answer.odd) == (3, 1)
    chosen = ReadData(data={"kind": "folder", "path": str(folder), "heldout_share": 0.5}, image_size=16)
    assert answer_read_data(chosen, workspace, lambda share, note: None).recognized["heldout_share"] == 0.5


def test_the_command_reads_as_it_is_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("bild,satz\n" + "".join(f"{folder}/{n:02}.png,gray-{n}\n" for n in range(24)), encoding="utf-8")
    show = ["data", "show", "--data", str(table), "--quick", "--workspace", str(tmp_path / "workspace")]
    assert main(show) != 0
    told = capsys.readouterr()
    assert "unclear which column of t.csv holds its captions" in told.err
    assert "Columns: bild, satz" in told.out
    assert main([*show, "--set", "data.image_column=bild", "--caption-column", "satz"]) == 0
    assert "24 pairs listed" in capsys.readouterr().out
    assert main([*show, "--set", "objective=cloob"]) != 0
    assert "data.FIELD=VALUE" in capsys.readouterr().err
    assert main([*show, "--caption-column", "satz", "--image-column", "bild", "--report", str(tmp_path / "r.txt")]) != 0
    assert "ends in .csv or .parquet" in capsys.readouterr().err


def test_a_folder_that_may_not_be_read_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, look = folder / "private", os.scandir
    _png(closed / "99.png")

    def refuse(place: str) -> Any:
        if str(place) == str(closed):
            raise PermissionError(13, "Permission denied", str(place))
        return look(place)

    monkeypatch.setattr(os, "scandir", refuse)
    found = _read(recognize(folder), tmp_path, opened=False)
    assert ("private", "The folder cannot be read: Permission denied.") in found.problems
    assert found.found == found.used + len(found.problems)


def test_a_place_that_cannot_be_looked_at_is_a_sentence() -> None:
    with pytest.raises(config.ConfigError, match="could not be examined: File name too long"):
        recognize("/tmp/" + "x" * 5_000)
