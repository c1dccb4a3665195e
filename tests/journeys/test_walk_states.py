"""Every view of the real window while nothing answers, and while everything fails: it says so, and offers Retry."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from explorer.event_loop.background import Background
from explorer.model_client.client import ModelClient
from explorer.views import VIEWS
from explorer.views.search.view import SearchQuery
from explorer.views.view import View
from explorer.widgets.state_area import Skeleton, StateArea, StatePage
from explorer.window import Window
from tests.journeys.conftest import opened_window
from trainer.messages import Failure

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

BUG = "list index out of range"
"""What an exception says; nobody wrote it for a person."""
ASKS_NOTHING = frozenset({"runs", "losslab", "experiments", "decode", "quality", "inspect", "classify", "probes"})
"""Views that compute at once or what a person asks for, that have been read before, or have nothing to show here."""


@pytest.fixture
def window(request: pytest.FixtureRequest, qapp: QApplication, two_runs) -> Iterator[Window]:
    """Return the real window with both runs selected, before any view but Runs was seen."""
    with opened_window(request, two_runs.workspace, safe=True) as window:
        window.selection.select_snapshots((1, two_runs.steps[0]), (2, two_runs.steps[1]))
        QtBot(request).waitUntil(lambda: not window.background.busy)
        yield window


def intercept(monkeypatch: pytest.MonkeyPatch, window: Window, instead: Callable[[Callable[..., Any]], None]) -> None:
    """Hand what the views ask of threads and processes to `instead`, as the callback that takes a failure."""
    run, ask = Background.run, ModelClient.ask

    def no_run(self, owner, function, *arguments, done, failed=None, **options):
        if not _of_a_view(owner, window):
            run(self, owner, function, *arguments, done=done, failed=failed, **options)
        else:
            instead(lambda: (failed or self.failed.emit)(IndexError(BUG)))

    def no_ask(self, question, *, done, failed, **options):
        instead(lambda: failed(Failure("bug", f"IndexError: {BUG}", "Ask again.")))
        return 0

    monkeypatch.setattr(Background, "run", no_run)
    monkeypatch.setattr(ModelClient, "ask", no_ask)
    assert ask is not ModelClient.ask


def _of_a_view(owner: Any, window: Window) -> bool:
    while owner is not None and not isinstance(owner, View):
        owner = owner.parent()
    return owner is not None


def open_view(window: Window, name: str) -> None:
    """Open a view; Search is asked something."""
    window.navigation.go_to(name)
    if name == "search":
        window.pages.open_view.ask(SearchQuery(text="a red circle"))


def seen(kind: type, inside: QWidget) -> list[Any]:
    """Return the widgets of a kind that a person sees."""
    return [one for one in inside.findChildren(kind) if one.isVisible() and not one.visibleRegion().isEmpty()]


def words_in(view: View) -> str:
    """Return everything that is written in a view."""
    return "\n".join(one.text() for one in (*seen(QLabel, view), *seen(QAbstractButton, view)))


def test_a_view_that_fails_says_what_failed_and_offers_a_way_on(qtbot, window: Window, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        intercept(patch, window, lambda fail: QTimer.singleShot(0, window, fail))
        found = {}
        for name in (entry.name for entry in VIEWS):
            open_view(window, name)
            qtbot.wait(400)
            view = window.pages.open_view
            pages = seen(StatePage, view)
            words = words_in(view)
            failed = [area for area in seen(StateArea, view) if area.kind == "failed"]
            if BUG in words or BUG in window.banner.next.text() + window.banner.message.text():
                found[name] = f"shows the text of an exception: {words}"
            elif name not in ASKS_NOTHING and not failed:
                found[name] = f"fails in silence: {[area.kind for area in seen(StateArea, view)]} {words}"
            elif any("No run yet" in page.title.text() for page in pages):
                found[name] = "says that there is no run"
            elif failed and not {"Retry", "Copy details"} <= {b.text() for b in seen(QAbstractButton, view)}:
                found[name] = f"offers no way on: {words}"
            window.banner.hide()
    assert not found, "\n".join(f"{name} {what}" for name, what in found.items())


def test_a_view_that_waits_is_never_blank_and_never_says_that_there_is_nothing(
    qtbot, window: Window, monkeypatch
) -> None:
    intercept(monkeypatch, window, lambda fail: None)
    found = {}
    for name in (entry.name for entry in VIEWS):
        open_view(window, name)
        qtbot.wait(400)
        view = window.pages.open_view
        kinds = [area.kind for area in seen(StateArea, view)]
        if name not in ASKS_NOTHING and not {"loading", "unknown"} & set(kinds):
            found[name] = f"does not say that it waits: {kinds}"
        elif name not in ASKS_NOTHING and not seen(Skeleton, view):
            found[name] = f"shows nothing where the result will be: {kinds} {words_in(view)}"
        elif "empty" in kinds and name not in ASKS_NOTHING:
            found[name] = f"says that there is nothing: {[p.title.text() for p in seen(StatePage, view)]}"
    assert not found, "\n".join(f"{name} {what}" for name, what in found.items())
