"""Every view of the real window with two real runs at two different steps, on data other than Scenes."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from explorer.event_loop.idle_scheduler import idle_scheduler
from explorer.intents import ClassifyPictures
from explorer.views import VIEWS
from explorer.window import Window
from tests.journeys.conftest import at_work, opened_window
from tests.nightly import nightly_except
from trainer.__main__ import main

pytestmark = pytest.mark.timeout(600)

ALL = frozenset(place.name for place in VIEWS)
SOME = frozenset({"runs", "map", "quality", "explaining"})
"""Views whose command the plain suite runs; test_charts_on_screen.py runs that of every chart."""


@pytest.fixture(scope="module")
def window(request: pytest.FixtureRequest, qapp: QApplication, two_runs) -> Iterator[Window]:
    """Return the real window with both runs selected, each at its last step; shared by all tests."""
    with opened_window(request, two_runs.workspace) as window:
        window.selection.select_snapshots((1, two_runs.steps[0]), (2, two_runs.steps[1]))
        yield window


@pytest.fixture
def open_view(qtbot, window: Window) -> Callable[[str], Any]:
    """Open a view and wait until all of its requests are complete."""

    def go(name: str) -> Any:
        window.navigation.go_to(name)
        qtbot.wait(300)
        # Beside other work the model process may take minutes to start.
        qtbot.waitUntil(lambda: not at_work(window) and idle_scheduler().idle, timeout=300_000)
        return window.pages.open_view

    return go


@pytest.mark.parametrize("exported", nightly_except([ALL, SOME], SOME), ids=["all", "some"])
def test_every_view_answers_for_both_runs_at_their_steps(
    qtbot, window: Window, open_view: Callable[[str], Any], two_runs, tmp_path: Path, exported: frozenset[str]
) -> None:
    window.router.send(ClassifyPictures(tuple(two_runs.pictures[:2])))
    for place in VIEWS:
        view = open_view(place.name)
        if place.name == "quality":
            view.check_data()
            qtbot.waitUntil(lambda shown=view: shown.loaded.report is not None, timeout=300_000)
        if place.name in ("experiments", "decode"):
            assert view.is_empty, "there is none: its own test makes one"
            continue
        assert not view.is_empty, f"{place.name} is empty"
        message = window.banner.message.text() if window.banner.isVisible() else ""
        # A slow computer tells the end of what took long.
        assert not message or "finished" in message, f"{place.name}: {message}"
        assert window.hooks.caught_count == 0, f"{place.name}: {window.hooks.log_file.read_text()}"
        command = view.command()
        if command is None or place.name not in exported:
            continue
        file = tmp_path / f"{place.name}.csv"
        assert main([*command, "--out", str(file), "--workspace", str(two_runs.workspace)]) == 0, command
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        assert rows or place.name == "quality", place.name  # these pairs may be above suspicion
        steps = {(row["run"], row["step"]) for row in rows if row.get("run") and row.get("step")}
        if steps and len(steps) == 2:
            assert steps == {("1", "24"), ("2", "36")}, place.name


def test_classify_shows_what_the_command_prints(
    qtbot, window: Window, open_view: Callable[[str], Any], two_runs, capsys
) -> None:
    picture = str(two_runs.pictures[0])
    sides = list(enumerate(two_runs.steps, start=1))
    window.router.send(ClassifyPictures((Path(picture),)))
    view = open_view("classify")
    qtbot.waitUntil(lambda: all(view.asking.prediction(picture, *at) for at in sides), timeout=300_000)
    capsys.readouterr()
    assert main([*view.command(), "--json", "--workspace", str(two_runs.workspace)]) == 0
    printed = json.loads(capsys.readouterr().out)
    for run in printed["runs"]:
        scaled = np.exp(run["inv_tau"] * np.array(run["cosines"][0]))
        np.testing.assert_allclose(run["probabilities"][0], scaled / scaled.sum(), atol=1e-4)
        shown = view.asking.prediction(picture, run["run"], run["step"])
        np.testing.assert_allclose(shown.probabilities, run["probabilities"][0], atol=1e-4)
