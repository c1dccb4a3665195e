"""What the tests of the window share: its looks, a workspace, a context for views, and a guard against leaks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from explorer import theme
from explorer.background import Background
from explorer.selection import Selection
from explorer.settings import Settings


@pytest.fixture
def dressed(qapp: QApplication) -> Iterator[QApplication]:
    """The application in the light theme, and back in it afterwards."""
    theme.theme().apply(qapp, "light")
    yield qapp
    theme.theme().mode = "light"


@pytest.fixture
def background(qapp: QApplication) -> Iterator[Background]:
    """The way off the GUI thread; every thread must have ended when the test does."""
    made = Background()
    yield made
    assert made.close(), "a function is still running on a background thread"


@pytest.fixture
def make_context(dressed: QApplication, background: Background, tmp_path: Path) -> Iterator[Callable[[], object]]:
    """Makes the context that views are given, around an empty workspace with the real jobs and asker."""
    from explorer.asker import Asker
    from explorer.jobs import Jobs
    from explorer.views.view import Context
    from trainer.store import Workspace

    made: list[Context] = []

    def make() -> Context:
        workspace = Workspace(tmp_path / "workspace")
        workspace.folder.mkdir(exist_ok=True)
        selection = Selection()
        jobs = Jobs(workspace, background, selection.undo)
        settings = Settings(workspace.folder)
        made.append(Context(workspace, selection, background, jobs, Asker(workspace), settings))
        return made[-1]

    yield make
    for context in made:
        context.jobs.close()
        context.asker.close()


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """No test leaves a thread at work; pytest-qt closes the widgets given to `qtbot.addWidget`."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in set(threading.enumerate()) - before if thread.is_alive() and not thread.daemon]
    # Threads of Qt's pools that have run Python once look alive as `_DummyThread` until the pool lets them go.
    left = [thread for thread in left if not isinstance(thread, threading._DummyThread)]
    assert not left, f"threads left running: {left}"
