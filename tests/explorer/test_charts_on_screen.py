"""What the screen shows is what is exported: every chart of the registry, with settings that are not the defaults."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from explorer.views.chart_pane import ChartPane
from trainer.__main__ import main
from trainer.charts import registry
from trainer.charts.settings import Setting, settings_of
from trainer.charts.spec import Chart, Request, Target
from trainer.store import Question, Workspace
from trainer.store.evaluation_files import TaskRecord, evaluation_folder, write_task

OTHER: dict[str, dict[str, Any]] = {
    # Nothing has embedded independent Scenes here.
    "attribute-probes": {"independent": False},
    "data-efficiency": {"group": ("*a*", "*b*"), "metric": "zero_shot_acc1"},
}
"""Chart -> values of settings that cannot be moved blindly, a row number for example."""

STEPS = (10, 20)
ASKED = {task: Question(task, 48, 4) for task in ("zero_shot", "few_shot")}


def evaluate(workspace: Workspace, run: int, step: int) -> None:
    """Stores a zero-shot evaluation and a few-shot one of a step."""
    metrics, record = {"zero_shot_acc1": step / 40}, {"edges": [0, 0.5, 1], "counts": [20, 28]}
    record |= {"inv_tau": 30.0, "ece": 0.1, "confidence": [0.3, 0.8], "accuracy": [0.4, step / 40]}
    about = {"classes": ["a", "b"], "reliability": {"own": record}}
    folder = evaluation_folder(workspace.runs.get(run).folder, "scenes", "renderings", step)
    write_task(folder, TaskRecord("zero_shot", metrics, 48, 48, about, {}, ASKED["zero_shot"]))
    curve = {"curve": [[1, step / 60, 0.02], [4, step / 40, 0.01]]}
    write_task(folder, TaskRecord("few_shot", {}, 48, 48, curve, {}, ASKED["few_shot"]))
    workspace.results.add_evaluation(run, step, "scenes", "renderings", metrics, ASKED)


def moved(chart: Chart[Any, Any]) -> Any:
    """The chart's settings, each away from its default where it can be moved."""
    values = {one.name: _other(one) for one in settings_of(chart.settings)} | OTHER.get(chart.name, {})
    return dataclasses.replace(chart.settings(), **values)


def _other(one: Setting) -> Any:
    if one.kind == "flag":
        return not one.default
    if one.kind == "choice":
        return next(option for option in reversed(one.options) if option != one.default)
    if one.kind in ("number", "whole"):
        down = 0.8 * one.default if one.default else 0.1
        value = max(one.low, down) if one.default > one.low else min(one.high, one.default + 1)
        return int(value) if one.kind == "whole" else float(value)
    return one.default


@pytest.mark.parametrize("name", [name for group in registry.BUILT_IN.values() for name in group])
def test_the_screen_shows_what_is_exported(
    qtbot, make_context, two_runs: tuple[int, int], tmp_path: Path, name: str
) -> None:
    chart = registry.load(name)
    context = make_context()
    for run, step in zip(two_runs, STEPS, strict=True):
        evaluate(context.workspace, run, step)
    pane = ChartPane(context, "test")
    qtbot.addWidget(pane)
    pane.resize(1200, 900)
    pane.show()
    refused: list[str] = []
    pane.refused.connect(refused.append)
    targets = tuple(Target(run, step) for run, step in zip(two_runs, STEPS, strict=True))
    pane.ask(chart, Request(targets if chart.needs != "none" else ()), moved(chart))
    qtbot.waitUntil(lambda: bool(refused) or (pane.answer is not None and not pane.busy), timeout=120_000)
    assert not refused

    # Off the GUI thread's turn: the offscreen plots are filled once they are seen.
    seen = list(pane.panel.shown())
    out = tmp_path / "chart.csv"
    assert main([*pane.command(), "--workspace", str(context.workspace.folder), "--out", str(out)]) == 0
    with out.open(encoding="utf-8") as file:
        exported = list(csv.DictReader(file))
    assert len(seen) == len(exported) > 0
    for shown, row in zip(seen, exported, strict=True):
        assert row["chart"] == name
        for value, column in zip(shown, ("part", "series", "x", "y", "low", "high"), strict=True):
            assert same(value, row[column]), (shown, row)


def same(shown: Any, exported: str) -> bool:
    """Equal numbers to 1e-6, or the same words; a text on the screen is as exact as its digits."""
    if shown is None or exported == "":
        return exported == "" and (shown is None or shown == "" or shown == "–" or shown != shown)
    if isinstance(shown, str):
        if shown == exported.removeprefix("'"):
            return True
        return _rounded(shown, exported)
    return abs(float(exported) - float(shown)) <= 1e-6 * max(1.0, abs(float(shown)))


def _rounded(shown: str, exported: str) -> bool:
    text = shown.replace("−", "-").replace(",", "")
    try:
        value, written = float(exported), float(text)
    except ValueError:
        return False
    mantissa, _, power = text.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(power or 0)
    return abs(value - written) <= 0.5000001 * 10**-digits
