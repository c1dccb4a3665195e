import os
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QUrl

from explorer.import_sheet.dropped_files import MOST, dropped
from tests.explorer.dropped_files import mime_of


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "ein Bild #1 %20ü.PNG"
    file.write_bytes(b"content is judged where it is read")
    return file


def test_local_images_are_taken_each_once(picture: Path) -> None:
    assert dropped(mime_of(picture, picture)) == type(dropped(mime_of(picture)))((picture,), "")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://example.com/cat.png", "a URL"),
        ("http://example.com/cat.png", "a URL"),
        ("data:image/png;base64,AAAA", "a URL"),
        ("file://server/share/cat.png", "another computer"),
        ("file:///no/such/cat.png", "not a regular file"),
    ],
)
def test_what_is_not_a_file_of_this_computer_is_refused_with_a_sentence(qapp, url: str, words: str) -> None:
    found = dropped(mime_of(url))
    assert found.paths == ()
    assert words in found.refused
    assert found.refused.endswith(".")


def test_text_is_taken_as_the_files_that_it_names_or_refused(picture: Path) -> None:
    text = QMimeData()
    text.setText("a red star")
    assert dropped(text).refused == "Not taken: a text that names no file."
    text.setText(str(picture))
    assert dropped(text).paths == (picture,)


def test_beside_images_folders_tables_other_files_and_pipes_are_refused(qapp, tmp_path: Path, picture: Path) -> None:
    text, pipe, table = tmp_path / "notes.txt", tmp_path / "pipe.png", tmp_path / "pairs.csv"
    text.write_text("x")
    table.write_text("x")
    os.mkfifo(pipe)
    found = dropped(mime_of(tmp_path, text, pipe, table, picture))
    assert (found.paths, found.data) == ((picture,), "")
    for words in ("folder", "drop it by itself to import", "notes.txt", "pipe.png", "pairs.csv, a table or tar"):
        assert words in found.refused


@pytest.mark.parametrize(
    "name", ["pairs.csv", "pairs.TSV", "dataset_coco.json", "a.jsonl", "a.ndjson", "a.parquet", "0.tar", "0.tar.gz"]
)
def test_a_table_or_a_tar_by_itself_is_data(qapp, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.touch()
    assert dropped(mime_of(file)) == type(dropped(mime_of(file)))((), data=str(file))
    assert dropped(mime_of(QUrl(f"https://example.com/{name}"))).data == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("captions.txt", "image,caption\n1.jpg,a dog\n"),
        ("results_20130124.token", "1.jpg#0\ta dog\n"),
        ("captions.txt", "1.jpg,a dog\n"),
    ],
)
def test_captions_under_other_endings_are_data_and_prose_is_none(qapp, tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert dropped(mime_of(file)).data == str(file)
    file.write_text("A sentence.\nAnother one.\n")
    assert dropped(mime_of(file)).data == ""


def test_what_is_not_read_is_refused_with_its_next_step(qapp, tmp_path: Path) -> None:
    (tmp_path / "captions.xlsx").touch()
    assert dropped(mime_of(tmp_path / "captions.xlsx")).refused == (
        "Not taken: captions.xlsx, which is not read (Save it as CSV)."
    )


def test_a_folder_by_itself_is_data_and_two_are_not(qapp, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert dropped(mime_of(tmp_path / "a")).data == str(tmp_path / "a")
    both = dropped(mime_of(tmp_path / "a", tmp_path / "b"))
    assert both.data == ""
    assert "the folder a" in both.refused


def test_several_tars_are_one_data_set(qapp, tmp_path: Path) -> None:
    tars = [tmp_path / f"{number}.tar" for number in (2, 0, 1)]
    for tar in tars:
        tar.touch()
    assert dropped(mime_of(*tars)).data == "::".join(str(tmp_path / f"{number}.tar") for number in (0, 1, 2))
    (tmp_path / "x.png").touch()
    assert dropped(mime_of(*tars, tmp_path / "x.png")).data == ""


def test_a_link_is_followed_once(tmp_path: Path, picture: Path) -> None:
    link = tmp_path / "link.png"
    link.symlink_to(picture)
    assert dropped(mime_of(link)).paths == (picture,)


def test_there_is_a_limit(qapp, tmp_path: Path) -> None:
    for number in range(MOST + 2):
        (tmp_path / f"{number}.jpg").touch()
    found = dropped(mime_of(*sorted(tmp_path.glob("*.jpg"))))
    assert len(found.paths) == MOST
    assert f"{MOST:,}" in found.refused


def test_the_same_refusal_is_counted_not_repeated(qapp) -> None:
    found = dropped(mime_of("https://a.example/1.png", "https://a.example/2.png"))
    assert found.refused.count("a URL") == 1
    assert "2 ×" in found.refused
