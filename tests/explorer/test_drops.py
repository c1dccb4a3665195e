from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QUrl

from explorer.window.drops import MOST, dropped


def _mime(*urls: QUrl | Path | str) -> QMimeData:
    mime = QMimeData()
    mime.setUrls(
        [u if isinstance(u, QUrl) else QUrl.fromLocalFile(str(u)) if isinstance(u, Path) else QUrl(u) for u in urls]
    )
    return mime


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "ein Bild #1 %20ü.PNG"
    file.write_bytes(b"content is judged where it is read")
    return file


def test_local_images_are_taken_each_once(picture: Path) -> None:
    assert dropped(_mime(picture, picture)) == type(dropped(_mime(picture)))((picture,), "")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://example.com/cat.png", "web"),
        ("http://example.com/cat.png", "web"),
        ("data:image/png;base64,AAAA", "web"),
        ("file://server/share/cat.png", "another computer"),
        ("file:///no/such/cat.png", "no ordinary file"),
    ],
)
def test_what_is_not_a_file_of_this_computer_is_refused_with_a_sentence(qapp, url: str, words: str) -> None:
    found = dropped(_mime(url))
    assert found.paths == ()
    assert words in found.refused
    assert found.refused.endswith(".")


def test_folders_other_files_and_pipes_are_refused(qapp, tmp_path: Path, picture: Path) -> None:
    text, pipe = tmp_path / "notes.txt", tmp_path / "pipe.png"
    text.write_text("x")
    os.mkfifo(pipe)
    found = dropped(_mime(tmp_path, text, pipe, picture))
    assert found.paths == (picture,)
    for words in ("folder", "notes.txt", "pipe.png"):
        assert words in found.refused


def test_a_link_is_followed_once(tmp_path: Path, picture: Path) -> None:
    link = tmp_path / "link.png"
    link.symlink_to(picture)
    assert dropped(_mime(link)).paths == (picture,)


def test_there_is_a_limit(qapp, tmp_path: Path) -> None:
    for number in range(MOST + 2):
        (tmp_path / f"{number}.jpg").touch()
    found = dropped(_mime(*sorted(tmp_path.glob("*.jpg"))))
    assert len(found.paths) == MOST
    assert f"{MOST:,}" in found.refused


def test_the_same_refusal_is_counted_not_repeated(qapp) -> None:
    found = dropped(_mime("https://a.example/1.png", "https://a.example/2.png"))
    assert found.refused.count("web") == 1
    assert "2 ×" in found.refused
