"""What is about run A or B has the color of the run, in whichever place, view or window it is."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.models.runs import SWATCH_ROLE, RunColumn
from explorer.render_qt.xy_plot import show_badge, tone_color
from explorer.theme import tokens
from explorer.views import VIEWS
from explorer.views.runs.view import RunsView
from explorer.views.view import Context
from explorer.widgets.run_badge import RunBadge
from explorer.window.side_colors import SideColors
from tests.explorer.widgets import add_widget
from tests.trainer.experiments.test_run_style import panel_of
from trainer import config
from trainer.__main__ import main
from trainer.charts.marks import arm_tone
from trainer.charts.run_tones import in_run_colors
from trainer.charts.spec import Request, targets_of
from trainer.config import default_paths
from trainer.experiments.experiment import clip_and_cloob, to_toml
from trainer.experiments.run_style import side_styles, styles_of
from trainer.store import RunLog, RunRow, Workspace


@pytest.fixture
def context(make_context) -> Context:
    made = make_context()
    experiment = dataclasses.replace(clip_and_cloob(None), name="duel")
    made.workspace.experiments.add("duel", to_toml(experiment))
    for seed in range(2):
        for arm in experiment.arms:
            run = experiment.run_of(arm, seed)
            made.workspace.runs.create(run, status="finished", experiment="duel", arm=arm.name)
    made.workspace.runs.create(config.Run(name="lone"), status="finished")
    return made


def test_a_and_b_have_the_colors_of_their_runs(qtbot: QtBot, context: Context) -> None:
    window = add_widget(qtbot, QWidget())
    SideColors(context, window)
    context.jobs.watch()
    qtbot.waitUntil(lambda: len(context.jobs.runs) == 5)
    blue, orange = tokens.run_colors(False)[:2]

    def sides() -> tuple[str, str]:
        return theme.color("run_a", window).name(), theme.run_color(1, window)

    context.selection.select_runs(1, 2)
    assert sides() == (blue, orange)
    badge = RunBadge("A", 0, window)
    first = badge.grab().toImage()
    context.selection.select_runs(2, 1)
    assert sides() == (orange, blue), "CLOOB is orange as A, too"
    assert badge.grab().toImage() != first
    assert tone_color(arm_tone(0)).name() == blue, "an arm is no letter"
    context.selection.select_runs(3, 2)
    assert sides() == (theme.run_shade(0, 1), orange)
    context.selection.select_runs(1, 3)
    assert sides() == (blue, theme.run_shade(0, 1)), "two seeds of an arm: the letters tell them"
    context.selection.select_runs(5, 1)
    assert sides() == (theme.run_shade(2, 0), blue)
    assert theme.run_color(2, window) == orange, "what is no run has none of their hues"
    context.selection.select_snapshots((2, None), (2, 1))
    assert sides() == (orange, theme.run_shade(1, 1)), "one run at two steps"
    assert theme.sides_of(QObject()) == (), "of another window nothing is known"


def test_the_badge_of_a_card_has_the_color_of_the_theme(dressed: object) -> None:
    badge = RunBadge("", 0)
    show_badge(badge, "run_b")
    try:
        for mode in ("dark", "light"):
            theme.theme().mode = mode
            assert badge.grab().toImage().pixelColor(3, 10) == tone_color("run_b")
    finally:
        theme.theme().mode = "light"


def test_a_run_has_one_color_in_the_list_the_views_the_charts_and_on_paper(
    qtbot: QtBot, context: Context, tmp_path: Path
) -> None:
    runs = add_widget(qtbot, RunsView(context))
    context.jobs.watch()
    qtbot.waitUntil(lambda: len(context.jobs.runs) == 5 and len(runs.table.runs.runs) == 5)
    for run in range(1, 6):
        context.workspace.runs.change(run, status="running")
        with RunLog.claim(context.workspace, run) as log:
            for step in (1, 2):
                log.scalars(step, {"train/loss": 1.0 / step})
            log.status("finished")
    seen: dict[int, set[str]] = {run: set() for run in range(1, 6)}
    for a, b in ((1, 2), (4, 3), (5, 1), (2, 5), (3, 1)):
        context.selection.select_runs(a, b)
        row = {run.id: index for index, run in enumerate(runs.table.runs.rows) if isinstance(run, RunRow)}
        for run in seen:
            seen[run].add(runs.table.runs.index(row[run], RunColumn.NAME).data(SWATCH_ROLE))
        drawn = in_run_colors(panel_of(2), context.workspace, Request(targets_of([a, b]))).mark("p")
        for place, run in enumerate((a, b)):
            seen[run] |= {theme.run_color(place, runs), tone_color(drawn.curves[place].tone).name()}
        file = tmp_path / f"{a}{b}.svg"
        words = ["export", "curves", "--runs", str(a), str(b), "--metrics", "train/loss", "--out", str(file)]
        assert main([*words, "--workspace", str(context.workspace.folder)]) == 0
        assert {*re.findall(r"stroke: (#[0-9a-f]{6})", file.read_text())} >= seen[a] | seen[b]
    request = Request(targets_of([5, 4, 3]))
    for run, style in zip((5, 4, 3), side_styles(styles_of(context.workspace), (5, 4, 3)), strict=True):
        seen[run].add(theme.run_shade(*style[:2]))
        plot = in_run_colors(panel_of(3), context.workspace, request).mark("p")
        seen[run].add(tone_color(plot.curves[(5, 4, 3).index(run)].tone).name())
    assert {run: len(shades) for run, shades in seen.items()} == dict.fromkeys(seen, 1)
    assert len({shade for shades in seen.values() for shade in shades}) == 5


@pytest.mark.slow
def test_two_windows_of_two_workspaces_keep_the_colors_of_their_own_runs(
    qtbot: QtBot, window_of: Callable[..., Any], two_runs: tuple[int, int], tmp_path: Path
) -> None:
    """A run has one color on Home, in Runs, on the map and in Similarity, also beside a window on the sample."""
    workspace = Workspace(tmp_path / "workspace")
    third = workspace.runs.create(config.Run(name="third", objective=config.SigLip()), status="finished")
    name = "val/image_to_text_R@1"
    for run, value in zip(two_runs, (0.5, 0.6), strict=True):
        workspace.runs.change(run, status="running")
        with RunLog.claim(workspace, run) as log:
            log.scalars(48, {name: value})
        workspace.runs.change(run, status="finished", step=96, total_steps=96, metric=name, last=value)
    styles = styles_of(workspace)
    workspace.close()
    entries = [entry for entry in VIEWS if entry.name in ("experiments", "runs", "map", "similarity")]
    window = window_of(tmp_path / "workspace", entries)
    other = window_of(default_paths.sample_workspace(), [entry for entry in VIEWS if entry.name in ("map", "runs")])
    other.selection.select_runs(2, 1)
    shades = {run: theme.run_shade(*styles[run][:2]) for run in (*two_runs, third)}
    assert len({*shades.values()}) == 3
    views = window.pages.views

    def colors(shown: Any) -> tuple[str, str]:
        return theme.run_color(0, shown), theme.run_color(1, shown)

    for a, b in (two_runs, two_runs[::-1], (two_runs[0], third), two_runs):
        window.selection.select_runs(a, b)
        for shown in (window, *views.values()):
            assert colors(shown) == (shades[a], shades[b]), type(shown).__name__
    assert colors(other) == (theme.run_shade(1, 0), theme.run_shade(0, 0))
    window.navigation.go_to("runs")
    model = views["runs"].table.runs
    rows = {run.id: row for row, run in enumerate(model.rows) if isinstance(run, RunRow)}
    assert {run: model.index(rows[run], RunColumn.NAME).data(SWATCH_ROLE) for run in shades} == shades
    window.navigation.go_to("similarity")
    panel = views["similarity"].cosines.pane.panel

    def tones() -> set[str]:
        marks = panel.panel.marks if panel.panel is not None else ()
        return {tone_color(mark.tone).name() for mark in marks if getattr(mark, "tone", None)}

    # A is drawn while B is computed.
    qtbot.waitUntil(lambda: tones() == {shades[run] for run in two_runs}, timeout=20_000)
    window.navigation.go_to("experiments")
    home = views["experiments"]
    qtbot.waitUntil(lambda: "last_runs" in vars(home) and home.last_runs.pane.panel.panel is not None, timeout=20_000)
    window.selection.select_runs(third, two_runs[0])  # whatever A and B are
    curves = [curve for mark in home.last_runs.pane.panel.panel.marks for curve in getattr(mark, "curves", ())]
    assert {tone_color(curve.tone).name() for curve in curves} == {shades[run] for run in two_runs}
