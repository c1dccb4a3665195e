"""Shared by the window's tests: theme, a workspace, a context for views, and a leak guard."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.event_loop.background import Background
from explorer.state.selection import Selection
from explorer.state.settings import Settings
from tests.explorer.widgets import add_widget
from tests.two_runs import write_two_runs

if TYPE_CHECKING:
    from explorer.views.view import Context
    from explorer.window import Window
    from trainer.store import Workspace

_TESTS = itertools.count()
_INSIDE_TESTS: Any = {"mode": None, "hooked": False, "collected": False}


@pytest.fixture(scope="session")
def _dress(qapp: QApplication) -> Callable[[], None]:
    """Return what applies the light theme, where it is not: applying it is slower than most tests."""
    sheet: list[str] = []

    def dress() -> None:
        if [qapp.styleSheet()] != sheet or theme.theme().dark:
            theme.theme().apply(qapp, "light")
            sheet[:] = [qapp.styleSheet()]

    return dress


@pytest.fixture
def dressed(qapp: QApplication, _dress: Callable[[], None]) -> Iterator[QApplication]:
    """Return the application in the light theme, and restore it afterwards."""
    _dress()
    yield qapp
    theme.theme().mode = "light"


@pytest.fixture
def background(qapp: QApplication) -> Iterator[Background]:
    """Return the background runner; every thread must have ended with the test."""
    made = Background()
    yield made
    assert made.close(), "a function is still running on a background thread"


@pytest.fixture
def context(workspace: Workspace, dressed: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """Return a context of the workspace whose jobs are looked at often; it has no model process."""
    from explorer.run_control import jobs as jobs_room
    from explorer.views.view import Context

    monkeypatch.setattr(jobs_room, "POLL_MS", 60)
    monkeypatch.setattr(jobs_room, "IDLE_POLL_MS", 120)
    background, selection = Background(), Selection()
    jobs = jobs_room.Jobs(workspace, background, selection.undo)
    yield Context(workspace, selection, background, jobs, None, Settings(workspace.folder))  # type: ignore[arg-type]
    jobs.close()
    background.close()


@pytest.fixture
def make_context(dressed: QApplication, background: Background, tmp_path: Path) -> Iterator[Callable[[], object]]:
    """Return a function that creates a view's context with an empty workspace, and real jobs and client."""
    from explorer.model_client.client import ModelClient
    from explorer.run_control.jobs import Jobs
    from explorer.views.view import Context
    from trainer.store import Workspace

    made: list[Context] = []

    def make() -> Context:
        workspace = Workspace(tmp_path / "workspace")
        workspace.folder.mkdir(exist_ok=True)
        selection = Selection()
        jobs = Jobs(workspace, background, selection.undo)
        settings = Settings(workspace.folder)
        made.append(Context(workspace, selection, background, jobs, ModelClient(workspace), settings))
        return made[-1]

    yield make
    for context in made:
        context.jobs.close()
        context.client.close()
        context.workspace.close()


@pytest.fixture
def show_view(qtbot: QtBot, make_context: Callable[[], object], two_runs: tuple[int, int]) -> Callable[..., Any]:
    """Return a function that shows a view of the two runs in a size, with other parts of its context if given."""

    def show(kind: Callable[[Any], Any], width: int, height: int, **parts: object) -> Any:
        context: Any = dataclasses.replace(make_context(), **parts)
        return add_widget(qtbot, _shown(kind, context, two_runs, width, height))

    return show


def _shown(kind: Callable[[Any], Any], context: Context, runs: tuple[int, int], width: int, height: int) -> Any:
    view = kind(context)
    view.resize(width, height)
    context.selection.propose(run_a=runs[0], run_b=runs[1])
    view.show()
    return view


@pytest.fixture(scope="module")
def share_view(
    _dress: Callable[[], None],
    tmp_path_factory: pytest.TempPathFactory,
    _two_runs_once: tuple[Path, tuple[int, int]],
) -> Iterator[Callable[..., Any]]:
    """Return a function that shows a view of the two runs until the file ends, for tests that only look and select."""
    from explorer.model_client.client import ModelClient
    from explorer.run_control.jobs import Jobs
    from explorer.views.view import Context
    from trainer.store import Workspace

    with contextlib.ExitStack() as opened:

        def share(kind: Callable[[Any], Any], width: int, height: int, make_client: Any = ModelClient) -> Any:
            _dress()
            folder = tmp_path_factory.mktemp("shared") / "workspace"
            _copy_two_runs(_two_runs_once[0], folder)
            workspace, background, selection = Workspace(folder), Background(), Selection()
            jobs = Jobs(workspace, background, selection.undo)
            client = make_client(workspace)
            for room in (workspace, background, client, jobs):
                opened.callback(room.close)
            context = Context(workspace, selection, background, jobs, client, Settings(folder))
            view = _shown(kind, context, _two_runs_once[1], width, height)
            opened.callback(view.deleteLater)
            opened.callback(view.close)
            return view

        yield share


def unselected(view: Any) -> Any:
    """Return a shared view after undoing what the test before has selected."""
    selection = view.context.selection
    while selection.undo.canUndo():
        selection.undo.undo()
    selection.undo.clear()
    selection.hovered = None
    return view


@pytest.fixture
def window_of(dressed: QApplication) -> Iterator[Callable[..., Window]]:
    """Return a function that opens the real window of a workspace with these or all views, until the test has ended."""
    from explorer.views import VIEWS
    from tests.real_window import real_window

    with contextlib.ExitStack() as opened:

        def open_window(folder: Path, entries: Any = VIEWS, **options: Any) -> Window:
            return opened.enter_context(real_window(folder, entries, **_INSIDE_TESTS, **options))

        yield open_window


@pytest.fixture(scope="module")
def window(
    _dress: Callable[[], None],
    tmp_path_factory: pytest.TempPathFactory,
    _two_runs_once: tuple[Path, tuple[int, int]],
) -> Iterator[Window]:
    """Return the real window with all its views and two runs, shared by a file's tests; no model is started."""
    from tests.real_window import real_window

    folder = tmp_path_factory.mktemp("shared") / "workspace"
    _copy_two_runs(_two_runs_once[0], folder)
    _dress()
    with real_window(folder, size=(1280, 800), **_INSIDE_TESTS) as shown:
        shown.services.client.ask = lambda _question, **_call: 0
        shown.selection.select_runs(*_two_runs_once[1])
        yield shown


@pytest.fixture(autouse=True, scope="session")
def _no_model_is_loaded_ahead(cold_models: Callable[..., None]) -> None:
    """Leave models to the tests that ask for them."""


@pytest.fixture(autouse=True)
def _garbage_is_collected_here() -> Iterator[None]:
    """Collect garbage as in the application (`garbage_collector`): destroying widgets on a worker thread crashes.

    Every test looks through what it made; the whole heap is looked through now and then.
    """
    gc.disable()
    yield
    gc.collect(2 if next(_TESTS) % 16 == 0 else 1)
    gc.enable()


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """Check that no test leaves a running thread; pytest-qt closes widgets passed to `qtbot.addWidget`."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in set(threading.enumerate()) - before if thread.is_alive() and not thread.daemon]
    # Threads of Qt's pools that have run Python once look alive as `_DummyThread` until the pool lets them go.
    left = [thread for thread in left if not isinstance(thread, threading._DummyThread)]
    for thread in left:
        thread.join(5)  # one that writes what is remembered ends by itself
    left = [thread for thread in left if thread.is_alive()]
    assert not left, f"threads left running: {left}"


@pytest.fixture
def two_runs(tmp_path: Path, _two_runs_once: tuple[Path, tuple[int, int]]) -> tuple[int, int]:
    """Return two runs in the workspace of `make_context`, with snapshots of the same 48 pairs at steps 10 and 20.

    Run A separates its pairs well, run B badly; images are real files.
    """
    _copy_two_runs(_two_runs_once[0], tmp_path / "workspace")
    return _two_runs_once[1]


def _copy_two_runs(source: Path, folder: Path) -> None:
    from trainer.store import Workspace

    shutil.copytree(source, folder, dirs_exist_ok=True)
    copy = Workspace(folder)
    copy.adopt()
    copy.close()


@pytest.fixture(scope="session")
def _two_runs_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[int, int]]:
    """Create the runs once and copy them, because syncing every run to disk takes a second."""
    from trainer import config
    from trainer.store import Workspace

    folder = tmp_path_factory.mktemp("two-runs")
    good, bad = write_two_runs(folder, [(config.Run(name="good"), 0.4), (config.Run(name="bad"), 1.6)])
    workspace = Workspace(folder / "workspace")
    for run, label in ((good, "good"), (bad, "bad")):
        workspace.runs.change(run, label=label)  # what every view shows
    workspace.close()
    return folder / "workspace", (good, bad)
