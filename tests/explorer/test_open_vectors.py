"""Opening vectors through the window: dropped, described, refused, and as a command."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from safetensors.numpy import save_file

from explorer.import_sheet.dropped_files import dropped
from explorer.intents import OpenVectors
from explorer.window import open_sheet
from explorer.window.open_vectors_sheet import OpenVectorsSheet, sides_of, sizes_of
from tests.explorer.dropped_files import mime_of
from tests.explorer.widgets import add_widget, show_widget
from trainer.scheduling.launch import wait_until_ended
from trainer.store import Workspace


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    rows = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    np.save(tmp_path / "img.npy", rows)
    np.save(tmp_path / "captions.npy", rows + 0.1)
    return tmp_path / "img.npy", tmp_path / "captions.npy"


def test_arrays_and_folders_of_vectors_are_taken(qapp, tmp_path: Path, files):
    assert dropped(mime_of(*files)).vectors == files
    assert dropped(mime_of(files[0])).vectors == files[:1]
    for name in ("base.fvecs", "base.u8bin", "wiki.vec"):
        (tmp_path / name).touch()
        assert dropped(mime_of(tmp_path / name)).vectors == (tmp_path / name,)
    (tmp_path / "embeddings" / "img_emb").mkdir(parents=True)
    assert dropped(mime_of(tmp_path / "embeddings")).vectors == (tmp_path / "embeddings",)
    for inside in ("bench/features_train.pt", "x.lance/_versions"):
        (tmp_path / inside).mkdir(parents=True)
        assert dropped(mime_of((tmp_path / inside).parent)).vectors == ((tmp_path / inside).parent,)
    assert dropped(mime_of(tmp_path)).data == str(tmp_path)
    np.savez(tmp_path / "both.npz", image=np.ones((2, 3)))
    assert dropped(mime_of(tmp_path / "both.npz")).vectors == (tmp_path / "both.npz",)
    np.savez(tmp_path / "pathmnist.npz", train_images=np.ones((2, 8, 8), np.uint8), train_labels=np.ones((2, 1), int))
    assert dropped(mime_of(tmp_path / "pathmnist.npz")).data == str(tmp_path / "pathmnist.npz")
    assert sides_of(files[::-1]) == {"image": files[0], "text": files[1]}


def test_the_sheet_says_how_many_rows_and_columns_it_opens(dressed, qtbot, background, tmp_path: Path, files):
    sheet = add_widget(qtbot, OpenVectorsSheet(tmp_path, background, files))
    sizes = "Images: 20 rows of 4 columns, float32. Texts: 20 rows of 4 columns, float32."
    qtbot.waitUntil(lambda: sheet.note.text() == sizes)
    np.save(tmp_path / "fewer.npy", np.zeros((19, 4), np.float16))
    sheet.editors["text"].setText(str(tmp_path / "fewer.npy"))
    differ = "Texts: 19 rows of 4 columns, float16. Row i of both is one pair: the numbers of rows differ."
    qtbot.waitUntil(lambda: differ in sheet.note.text(), timeout=5_000)
    tensors = {"image": np.zeros((3, 2), np.float32), "other": np.zeros((5, 2), np.float32)}
    save_file(tensors, tmp_path / "both.safetensors")
    (tmp_path / "broken.npy").write_bytes(b"no array")
    sizes_told = sizes_of({"image": str(tmp_path / "both.safetensors"), "text": str(tmp_path / "broken.npy")})
    assert sizes_told == {"image": (3, "2 arrays: image 3 × 2, other 5 × 2")}


def test_words_with_vectors_are_told_from_other_texts_and_weights_by_their_first_line(qapp, tmp_path: Path):
    word = b"the " + b" ".join(b"0.25" for _ in range(50))
    contents = {
        "glove.txt": word,
        "w2v.bin": b"1 2\nthe \0\0\0\0\0\0\0\0",
        "wiki.vec.gz": gzip.compress(b"1 50\n" + word),
    }
    contents["matrix.txt"], contents["cells.txt"] = word[4:], word[4:].replace(b" ", b",")
    others = {"notes.txt": b"the 12 monkeys", "pytorch_model.bin": b"PK\3\4 1 2 3", "cut.txt.gz": b"\x1f\x8b\x08"}
    for name, content in (contents | others).items():
        (tmp_path / name).write_bytes(content)
        vectors = (tmp_path / name,) if name in contents else ()
        assert dropped(mime_of(tmp_path / name)).vectors == vectors, name
        side = "image" if name in ("matrix.txt", "cells.txt") else "text"
        assert sides_of(vectors) == ({side: tmp_path / name} if vectors else {})
    assert dropped(mime_of(tmp_path / "pytorch_model.bin")).model == tmp_path / "pytorch_model.bin"


@pytest.mark.slow
def test_the_sheet_opens_a_run_that_the_store_knows(dressed, background, qtbot, tmp_path: Path, files):
    sheet = show_widget(qtbot, OpenVectorsSheet(tmp_path / "ws", background, files))
    qtbot.keyClicks(sheet.editors["name"], "Mine")
    sheet.editors["text-column"].setText("captions")
    assert sheet.command() == [
        *("open", "vectors", "--image", str(files[0]), "--text", str(files[1])),
        *("--text-column", "captions", "--name", "Mine"),
    ]
    with qtbot.waitSignal(sheet.opened) as opened:
        qtbot.keyClick(sheet.editors["name"], Qt.Key.Key_Return)
    workspace = Workspace(tmp_path / "ws")
    assert wait_until_ended(workspace, opened.args[0], timeout_s=60)
    row = workspace.runs.get(opened.args[0])
    assert (row.name, row.status) == ("Mine", "finished")


@pytest.mark.slow
def test_what_is_opened_becomes_a_on_the_map(window, qtbot, monkeypatch: pytest.MonkeyPatch, files):
    selection, b = window.selection, window.selection.run_b
    monkeypatch.setattr(open_sheet, "start_opening", lambda workspace, words: b)
    selection.select_runs(None, selection.run_a)
    window.navigation.go_to("runs")
    window.router.send(OpenVectors(files))
    window.findChild(OpenVectorsSheet).accept()
    qtbot.waitUntil(lambda: (selection.run_a, window.navigation.view_name) == (b, "map"))
    assert selection.run_b is None, "what stood there is of other data"
    qtbot.waitUntil(lambda: getattr(window.navigation.view("map").panels[0].side, "run", None) == b)


@pytest.mark.slow
def test_the_sheet_stays_and_says_what_is_wrong(dressed, background, qtbot, tmp_path: Path):
    np.save(tmp_path / "line.npy", np.ones(9))
    sheet = show_widget(qtbot, OpenVectorsSheet(tmp_path / "ws", background, [tmp_path / "line.npy"]))
    sheet.start.click()
    qtbot.waitUntil(lambda: "holds no vectors" in sheet.note.text())
    assert sheet.isVisible()
    assert sheet.start.isEnabled()
    sheet.editors["image"].clear()
    buttons = sheet.start, sheet.findChild(QPushButton, "open-vectors-copy")
    assert not any(button.isEnabled() for button in buttons), "a command without a file can only fail"
