"""What is about run A or B has the color of the run, in whichever place it is."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from explorer import theme
from explorer.render_qt.xy_plot import tone_color
from explorer.theme import tokens
from explorer.views.view import Context
from explorer.widgets.run_badge import RunBadge
from explorer.window.side_colors import SideColors
from trainer import config
from trainer.charts.marks import arm_tone
from trainer.experiments.experiment import clip_and_cloob, to_toml


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
    parent = QObject()
    SideColors(context.selection, context.jobs, parent)
    context.jobs.watch()
    qtbot.waitUntil(lambda: len(context.jobs.runs) == 5)
    blue, orange = tokens.run_colors(False)[:2]

    def sides() -> tuple[str, str]:
        return theme.color("run_a").name(), theme.run_color(1)

    context.selection.select_runs(1, 2)
    assert sides() == (blue, orange)
    badge = RunBadge("A", 0)
    qtbot.addWidget(badge)
    first = badge.grab().toImage()
    context.selection.select_runs(2, 1)
    assert sides() == (orange, blue), "CLOOB is orange as A, too"
    assert badge.grab().toImage() != first
    assert tone_color(arm_tone(0)).name() == blue, "an arm is no letter"
    context.selection.select_runs(3, 2)
    assert sides() == (theme.run_shade(0, 1), orange)
    for pair in ((1, 3), (1, 5)):
        context.selection.select_runs(*pair)
        assert sides() == (blue, orange), "no two hues of the arms: the letters tell them"
    parent.deleteLater()
