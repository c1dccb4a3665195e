"""What is double-clicked: a workspace, a file or a link reaches the window that shows it."""

from argparse import Namespace
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget

from explorer import __main__ as program
from explorer.__main__ import take_path
from explorer.event_loop.background import Background
from explorer.window.drop_handler import DropHandler
from tests.explorer.widgets import add_widget


def opened(path: str) -> Namespace:
    options = Namespace(path=path, workspace=None, open="")
    assert take_path(options) is None
    return options


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "my runs"
    folder.mkdir()
    (folder / "explorer.db").touch()
    return folder


def test_a_workspace_is_opened_by_its_folder_its_database_and_its_address(workspace: Path):
    for words in (str(workspace), str(workspace / "explorer.db"), (workspace / "explorer.db").as_uri()):
        options = opened(words)
        assert options.workspace == workspace
        assert options.open == ""


def test_a_file_goes_to_the_window_and_a_link_stays_one(tmp_path: Path):
    file = tmp_path / "a b.zip"
    file.touch()
    assert opened(str(file)).open == file.as_uri()
    assert opened(file.as_uri()).open == file.as_uri()
    assert opened("contrastive-explorer://open?view=map").open == "contrastive-explorer://open?view=map"


def test_what_is_not_there_is_told(tmp_path: Path):
    options = Namespace(path=str(tmp_path / "gone.zip"), workspace=None, open="")
    assert "is not there" in take_path(options)


def test_a_file_is_taken_as_if_dropped(qtbot, background: Background, tmp_path: Path):
    window = add_widget(qtbot, QWidget())
    picture = tmp_path / "a b.png"
    image = QImage(4, 4, QImage.Format.Format_RGB32)
    image.fill(0)
    assert image.save(str(picture))
    handler = DropHandler(window, tmp_path, background)
    with qtbot.waitSignal(handler.pictures_arrived) as taken:
        handler.take_file(QUrl(picture.as_uri()))
    assert taken.args == [[picture]]


def test_the_program_opens_the_workspace_that_it_is_started_on(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    folders: list[Path] = []

    def run(folder: Path, _options: Namespace, **_more: object) -> tuple[int, bool]:
        folders.append(folder)
        return 0, False

    monkeypatch.setattr(program, "_run", run)
    for arguments in ([str(workspace)], ["--workspace", str(workspace)]):
        assert program.main(arguments) == 0
    assert folders == [workspace, workspace]
