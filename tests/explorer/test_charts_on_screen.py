"""What the screen shows is what is exported: every chart of the registry, with non-default settings."""

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from explorer.render_qt.xy_plot import XYPlotWidget
from explorer.views.chart_pane import ChartPane
from tests.explorer.answering_client import AnsweringClient
from tests.explorer.widgets import show_widget
from tests.nightly import nightly_except
from trainer.__main__ import main
from trainer.charts import registry
from trainer.charts.class_task import ClassTexts, ClassWords, write_class_texts
from trainer.charts.outside_query import OutsideQuery
from trainer.charts.spec import Chart, Request, Target
from trainer.config import Clip, Cloob
from trainer.config import to_toml as to_text
from trainer.config.fields import Field, fields_of
from trainer.experiments.experiment import Arm, Experiment, Outcome, to_toml
from trainer.inference import chart_query, embed, model_cache
from trainer.messages import PlaceRows, decode_answer
from trainer.projection import fitting
from trainer.store import Question, RunLog, Workspace
from trainer.store.task_records import TaskRecord, evaluation_folder, write_task

OTHER: dict[str, dict[str, Any]] = {
    "field-grid": {"rows": "", "columns": ""},
    "axes": {"x": "a red ring; a red disc - a blue ring", "y": "a star"},
    # Nothing has embedded independent Scenes here.
    "attribute-probes": {"independent": False},
    "search": {"query_text": "a red ring", "k": 7},
    "probe-strip": {"text": ("a red ring",), "steps": 2},
    "calibration": {"tau": (0.05, 0.2)},
    "prompts": {"weights": (1.0, 0.25), "value": "accuracy"},
    "groups": {"group": ("*a*", "*b*")},
    "published-table": {"table": "yfcc"},
    "data-efficiency": {"group": ("*a*", "*b*"), "metric": "zero_shot_acc1"},
}
"""Chart -> values of settings that cannot be moved blindly, a row number for example."""

CHARTS = [name for group in registry.BUILT_IN.values() for name in group if name != "generative-classes"]
"""All but one, whose records take the training of two models: tests/trainer/evaluation/test_generative.py."""
STEPS = (10, 20)
ASKED = {task: Question(task, 48, 4) for task in ("zero_shot", "few_shot")}


def evaluate(workspace: Workspace, run: int, step: int) -> None:
    """Store a loss, and evaluations of a step on three tasks."""
    metrics, record = {"zero_shot_acc1": step / 40}, {"edges": [0, 0.5, 1], "counts": [20, 28]}
    record |= {
        "inv_tau": 30.0,
        "ece": 0.1,
        "ece_calibrated": 0.04,
        "confidence": [0.3, 0.8],
        "accuracy": [0.4, step / 40],
    }
    about = {"classes": ["a", "b"], "reliability": {"own": record}}
    folder = evaluation_folder(workspace.runs.get(run).folder, "scenes", "renderings", step)
    write_task(folder, TaskRecord("zero_shot", metrics, 48, 48, about, {}, ASKED["zero_shot"]))
    curve = {"curve": [[1, step / 60, 0.02], [4, step / 40, 0.01]]}
    write_task(folder, TaskRecord("few_shot", {}, 48, 48, curve, {}, ASKED["few_shot"]))
    found = {"label": np.arange(48) % 2, "predicted": np.arange(48) % 3 % 2, "path": np.arange(48).astype(str)}
    write_task(folder, TaskRecord("knn", {}, 48, 48, {"classes": ["a", "b"]}, found, Question("knn", 48, 2)))
    said = {"published": "p", "changed": "c", "why_not": ""}
    factors = [{"name": name, "label": name, **said} for name in ("captions", "gallery")]
    cost = {"share": step / 50, "difference": -0.1, "low": -0.2, "high": 0.01, "p": 0.1, "p_holm": 0.2, "test": "delta"}
    costs = {"published": 0.5, "changed": step / 50, "n": 48, "factors": factors}
    costs |= {way: dict.fromkeys(("captions", "gallery"), cost) for way in ("alone", "in_order")}
    told = {"measures": {"image_to_text": costs}, "metric": "R@1"}
    write_task(folder, TaskRecord("retrieval_protocol", {}, 48, 48, told, {}, Question("retrieval_protocol", 48)))
    chosen = {name: np.arange(48).astype(str) for name in ("path", "caption", "negative")}
    chosen |= {"kind": np.array(["color", "order"] * 24), "right": np.arange(48) < 2 * step, "margin": np.zeros(48)}
    kinds = {"kinds": {kind: {"share": 0.5, "n": 24, "low": 0.3, "high": 0.7} for kind in ("color", "order")}}
    write_task(folder, TaskRecord("caption_choice", {}, 48, 48, kinds, chosen, Question("caption_choice", 48)))
    probed = metrics | {"linear_probe_acc1": step / 30}
    workspace.results.add_evaluation(run, step, "scenes", "renderings", probed, ASKED)
    workspace.results.add_evaluation(run, step, "GTSRB", "test", {"zero_shot_acc1": step / 50}, ASKED)
    with RunLog.claim(workspace, run) as log:
        for at in range(1, 50):
            log.scalars(at, {"train/loss": 1 / at})
        log.scalars(step, {"val/image_to_text_R@1": 0.5, "combinations/image_to_text_R@1": step / 40})
        measures = ("purity", "loss", "random_loss", "random_cosine")
        log.scalars(step, {f"train/clusters{size}_{name}": step / size / 40 for size in (4, 8) for name in measures})
        log.facts(parameters=1000 * run)
        log.status("finished")


def make_experiment(workspace: Workspace, runs: tuple[int, int]) -> None:
    """Make the two runs the arms of an experiment with one seed."""
    own = [workspace.runs.config_of(run) for run in runs]
    arms = (Arm("CLIP", dataclasses.replace(own[0], objective=Clip())), Arm("CLOOB", own[1]))
    arms = (arms[0], Arm("CLOOB", dataclasses.replace(arms[0].run, objective=Cloob())))
    made = Experiment(name="two", arms=arms, outcome=Outcome("zero_shot_acc1", "renderings"), fields=("objective",))
    workspace.experiments.add("two", to_toml(made))
    for run, arm, step in zip(runs, arms, STEPS, strict=True):
        config = dataclasses.replace(arm.run, name=workspace.runs.get(run).name)
        workspace.runs.change(run, experiment="two", arm=arm.name, config=to_text(config), step=step)


def moved(chart: Chart[Any, Any]) -> Any:
    """Return the chart's settings, each different from its default if possible."""
    values = {one.name: _other(one) for one in fields_of(chart.settings)} | OTHER.get(chart.name, {})
    return dataclasses.replace(chart.settings(), **values)


def _other(one: Field) -> Any:
    if one.kind == "flag":
        return not one.default
    if one.kind == "choice":
        return next(option for option in reversed(one.options) if option != one.default)
    if one.kind in ("number", "integer"):
        down = 0.8 * one.default if one.default else 0.1
        value = max(one.low, down) if one.default > one.low else min(one.high, one.default + 1)
        return int(value) if one.kind == "integer" else float(value)
    return one.default


def vectors(texts: Sequence[str]) -> np.ndarray:
    """Return the embeddings by the stand-in of every model."""
    rows = np.stack([np.random.default_rng(sum(map(ord, text))).normal(size=8) for text in texts])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def class_files(folder: Path, request: Request) -> tuple[str, ...]:
    """Return files of classes in two templates, as embedded by each target's stand-in."""
    files, labels, templates = [], ("ring", "star", "heart", "cross"), ("a {}", "{}")
    for place, target in enumerate(request.targets):
        files.append(folder / f"classes-{place}.npy")
        found = vectors([words.format(name) for words in templates for name in labels]).reshape(2, 4, 8)
        write_class_texts(files[-1], ClassTexts(target.run, target.step, 12.0, labels, templates, found))
    return tuple(map(str, files))


class StandIn(AnsweringClient):
    """Answers for the model process of the window."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def answer_of(self, question: Any) -> Any:
        file = self.folder / f"{self.asked.index(question)}.npy"
        words = isinstance(question, PlaceRows)
        np.save(file, np.load(question.vectors)[:, :2] if words else vectors(question.texts))
        return decode_answer(question, {"array": str(file)})


@pytest.fixture
def embedding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Replace the models of window and command line by one that needs no checkpoint."""
    two_towers = SimpleNamespace(model=SimpleNamespace(text=object()))
    monkeypatch.setattr(model_cache.ModelCache, "get", lambda *_: SimpleNamespace(opened=two_towers))
    monkeypatch.setattr(embed, "embed_sentences", lambda _model, texts, *_: vectors(texts))
    monkeypatch.setattr(fitting, "placed", lambda rows, *_: np.asarray(rows)[:, :2])
    monkeypatch.setattr(chart_query, "class_files", lambda _space, request, *_: class_files(tmp_path, request))
    return StandIn(tmp_path)


# Every sixth, and one with points, which none of these has.
@pytest.mark.parametrize("name", nightly_except(CHARTS, *CHARTS[::6], "effective-robustness"))
def test_the_screen_shows_what_is_exported(
    qtbot, make_context, embedding: StandIn, two_runs: tuple[int, int], tmp_path: Path, name: str
) -> None:
    chart = registry.load(name)
    context = dataclasses.replace(make_context(), client=embedding)
    for run, step in zip(two_runs, STEPS, strict=True):
        evaluate(context.workspace, run, step)
    if chart.view == "experiments":
        make_experiment(context.workspace, two_runs)
    pane = show_widget(qtbot, ChartPane(context, "test"), 1200, 900)
    refused: list[str] = []
    pane.refused.connect(lambda: refused.append(name))
    steps = (None, None) if chart.needs == "whole_runs" else STEPS
    targets = tuple(Target(run, step) for run, step in zip(two_runs, steps, strict=True))
    request = Request(targets if chart.needs != "none" else ())
    if issubclass(chart.settings, ClassWords):
        request = dataclasses.replace(request, class_texts=class_files(tmp_path, request))
    settings = moved(chart)
    if isinstance(settings, OutsideQuery) and settings.is_outside:
        query = tuple(map(tuple, vectors([settings.query_text]).tolist()))
        request = dataclasses.replace(request, vectors=(query,) * len(targets))
    pane.ask(chart, request, settings)
    qtbot.waitUntil(lambda: bool(refused) or (pane.answer is not None and not pane.busy), timeout=120_000)
    assert not refused

    for card in pane.panel.findChildren(XYPlotWidget):
        # Where the machine is slow, plots are there that were prepared for later panels.
        if card.isVisible():
            assert_within_percent(card)
    # Off the GUI thread's turn: the offscreen plots are filled once they are seen.
    seen = list(pane.panel.shown())
    out = tmp_path / "chart.csv"
    assert main([*pane.command(), "--workspace", str(context.workspace.folder), "--out", str(out)]) == 0
    with out.open(encoding="utf-8") as file:
        # Which steps the runs have is in the bar of the window.
        exported = [row for row in csv.DictReader(file) if row["part"] != "steps"]
    assert len(seen) == len(exported) > 0
    for shown, row in zip(seen, exported, strict=True):
        assert row["chart"] == name
        for value, column in zip(shown, ("part", "series", "x", "y", "low", "high"), strict=True):
            assert same(value, row[column]), (shown, row)


def assert_within_percent(plot: XYPlotWidget) -> None:
    """Check that an axis of shares shows nothing below 0 or above 100 on the screen, but for half a marker there."""
    assert plot.spec is not None
    ranges = plot.getViewBox().viewRange()
    axes = ((plot.spec.x, (plot.spec.x.low, plot.spec.x.high)), (plot.spec.y, plot.spec.value_ends))
    for (axis, ends), seen in zip(axes, reversed(ranges) if plot.spec.lying else ranges, strict=True):
        if axis.label == "%" or "(%)" in axis.label:
            assert 0 <= axis.low < axis.high <= 100
            assert seen == pytest.approx(ends)
            assert ends[0] >= axis.low - 4
            assert ends[1] <= axis.high + 4


def same(shown: Any, exported: str) -> bool:
    """Return whether numbers are equal to 1e-6 or texts are equal; screen texts are as exact as their digits."""
    if shown is None or exported == "":
        return exported == "" and (shown is None or shown == "" or shown == "–" or shown != shown)
    if isinstance(shown, str):
        if shown == exported.removeprefix("'"):
            return True
        return _rounded(shown, exported)
    return abs(float(exported) - float(shown)) <= 1e-6 * max(1.0, abs(float(shown)))


def _rounded(shown: str, exported: str) -> bool:
    text, _, unit = shown.replace("−", "-").replace(",", "").partition(" ")
    try:
        value, written = float(exported) * (100 if unit in ("%", "points") else 1), float(text)
    except ValueError:
        return False
    mantissa, _, power = text.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(power or 0)
    return abs(value - written) <= 0.5000001 * 10**-digits
