"""The page that installs torch: in front where it is missing, with progress, a pause and another try."""

import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QToolButton

from explorer.views import VIEWS
from explorer.window.navigation import INSTALL_PAGE
from explorer.window.training_install import TrainingInstall
from explorer.window.training_page import TrainingPage
from tests.explorer.widgets import show_widget
from trainer.distribution import training_part


def program(text: str) -> list[str]:
    """Return a stand-in for `trainer install`."""
    return [sys.executable, "-c", f"import sys, time\n{text}"]


TELLS = "print(' 40% downloading: 4 of 10 MB', file=sys.stderr, flush=True)\n"


@pytest.fixture
def make_page(dressed, background, qtbot):
    def make(text: str) -> TrainingPage:
        page = show_widget(qtbot, TrainingPage(background, install=TrainingInstall(program=program(text))), 900, 700)
        qtbot.waitUntil(lambda: "GB" in page.facts.text())
        return page

    return make


def test_size_and_place_are_told_before_anything_starts(make_page):
    page = make_page("")
    assert "Download: about" in page.facts.text()
    assert "On disk: about" in page.facts.text()
    assert page.place.text().startswith("Installed into ")
    assert page.start.isVisible()
    assert not page.pause.isVisible()
    page.wheels.setText("/some/wheels")
    assert "uses only" not in page.facts.text()
    assert page.facts.text().startswith("Everything is taken from the folder")
    assert page.arguments() == ["--backend", "auto", "--wheels", "/some/wheels"]


@pytest.mark.slow
def test_progress_pause_and_end(make_page, qtbot, tmp_path: Path):
    go = tmp_path / "go"
    wait = f"import pathlib\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(.02)\n"
    page = make_page(TELLS + wait)
    page.start.click()
    qtbot.waitUntil(lambda: page.bar.value() == 40)
    assert page.note.text() == "Downloading: 4 of 10 MB…"
    page.pause.click()
    assert page.install.state == "paused"
    assert page.pause.text() == "Continue"
    go.touch()
    qtbot.wait(300)
    assert page.install.state == "paused", "it went on although it was paused"
    with qtbot.waitSignal(page.installed, timeout=10_000):
        page.pause.click()


@pytest.mark.slow
def test_a_failure_says_why_and_is_tried_again(make_page, qtbot, tmp_path: Path):
    second = tmp_path / "second"
    page = make_page(
        f"import pathlib\nthere = pathlib.Path({str(second)!r})\nagain = there.exists()\nthere.touch()\n"
        "again or sys.exit(print('trainer install: No network.', file=sys.stderr) or 2)"
    )
    page.start.click()
    qtbot.waitUntil(lambda: page.install.state == "failed")
    assert page.note.text() == "No network."
    assert page.start.text() == "Retry"
    assert page.details.isVisible()
    with qtbot.waitSignal(page.installed, timeout=10_000):
        page.start.click()


@pytest.mark.slow
def test_cancel_ends_what_it_started(make_page, qtbot):
    import psutil

    child = f"import subprocess\nsubprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(60)'])\n"
    page = make_page(child + TELLS + "time.sleep(60)")
    page.start.click()
    qtbot.waitUntil(lambda: page.bar.value() == 40)
    children = psutil.Process().children(recursive=True)
    started = [one for one in children if "time.sleep(60)" in " ".join(one.cmdline())]
    assert len(started) == 2
    page.cancel.click()
    assert page.install.state == "idle"
    _gone, alive = psutil.wait_procs(started, timeout=5)
    assert [one for one in alive if one.status() != psutil.STATUS_ZOMBIE] == []


@pytest.fixture
def open_window(window_of, tmp_path):
    return lambda: window_of(tmp_path, VIEWS[:1])


def test_where_it_is_missing_the_page_is_in_front_until_left(open_window, monkeypatch):
    monkeypatch.setattr(training_part, "is_there", lambda: False)
    window = open_window()
    page = window.pages.places[INSTALL_PAGE]
    assert window.pages.stack.currentWidget() is page
    button = window.status.findChild(QToolButton, "statusInstall")
    assert button.text() == "Install torch"
    window.navigation.go_to("runs")
    assert window.pages.open_view is window.pages.views["runs"]
    button.click()
    assert window.pages.stack.currentWidget() is page
    page.leave.click()
    assert window.pages.open_view is window.pages.views["runs"]
    window.close()
    again = open_window()
    assert again.pages.open_view is again.pages.views["runs"], "who has gone on without it is not asked again"
    assert again.status.findChild(QToolButton, "statusInstall").isVisible()


def test_once_it_is_there_the_page_goes(open_window, monkeypatch):
    monkeypatch.setattr(training_part, "is_there", lambda: False)
    window = open_window()
    window.pages.places[INSTALL_PAGE].installed.emit()
    assert window.pages.open_view is window.pages.views["runs"]
    assert not window.status.findChild(QToolButton, "statusInstall").isVisible()
    assert window.banner.message.text().startswith("Torch is installed")


def test_where_torch_is_there_nothing_is_offered(open_window):
    window = open_window()
    assert INSTALL_PAGE not in window.pages.places
    assert not window.status.findChild(QToolButton, "statusInstall").isVisible()
