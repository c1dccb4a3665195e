"""What each deviation from the published protocol costs: why a number is not the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from trainer.analysis.number_text import signed
from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.evaluation import EvaluatedRun, EvaluationChart, evaluation_at
from trainer.charts.marks import (
    Mark,
    Marker,
    NumberRow,
    NumberTable,
    Panel,
    XYPlot,
    axis_over,
    categories,
    heading_row,
    run_tone,
)
from trainer.charts.measures.groups import p_text
from trainer.charts.published_numbers import published_table
from trainer.charts.spec import Chart, Records, Request
from trainer.config.fields import option
from trainer.metrics import data_label, recall_name
from trainer.store import Workspace
from trainer.store.task_records import TaskRecord

METHOD: Final = """\
The same model on the same pictures, once by the published protocol and then with one decision after the other made \
otherwise. Zero-shot (Radford et al. 2021, section 3.1.4, arXiv 2103.00020): class c has the weight \
w_c = norm(mean_t norm(f(t(c)))) over the templates t of the suite, and a picture x the class argmax_c <norm(g(x)), \
w_c>; names, templates, preprocessing, activation, tokenizer and context are the model's and the suite's, precision is \
float32, every row counts, and the metric is the paper's. Retrieval follows CLIP_benchmark.

"Alone" changes one decision of the published protocol; "in order" keeps those above it changed, so that the bars end \
at the number with every deviation. Intervals are 95 %. P is exact McNemar (1947) with Newcombe's interval (1998) \
where each picture counts once in both; where rows count unequally or pictures have several, it is the delta method \
over pictures: sd² = Σ_pictures (Σ_rows w_b (r_b - s_b) - w_a (r_a - s_a))². P values are adjusted by Holm (1979), \
those alone and those in order each as a family. Another split has other pictures: the two variances add up."""

MEASURES: Final = {
    "zero_shot": "Zero-shot",
    "image_to_text": recall_name("image_to_text"),
    "text_to_image": recall_name("text_to_image"),
}


@dataclass(frozen=True)
class ProtocolSettings:
    """The task that is explained."""

    task: Literal["zero_shot", "retrieval"] = option(
        "zero_shot",
        "Task",
        "Whose protocol is explained.",
        named={"zero_shot": "Zero-shot", "retrieval": "Retrieval"},
    )


def compute(workspace: Workspace, request: Request, settings: ProtocolSettings, _progress: Progress) -> EvaluationChart:
    """Return the runs' stored evaluations on the requested data set or the one measured last.

    Raises:
        ChartError: The task of no run has been explained there.
    """
    chart = evaluation_at(workspace, request)
    if not _measured(chart, settings.task):
        task = settings.task
        raise ChartError(
            f"{task.replace('_', '-').capitalize()} on {data_label(chart)} is not explained yet. "
            f"Run trainer evaluate RUN --task {task} --explain, or choose that task in Evaluate."
        )
    return chart


def _measured(chart: EvaluationChart, task: str) -> list[tuple[EvaluatedRun, TaskRecord]]:
    return [(run, run.tasks[f"{task}_protocol"]) for run in chart.runs if f"{task}_protocol" in run.tasks]


def draw(chart: EvaluationChart, settings: ProtocolSettings) -> Panel:
    """Draw the waterfall of each run, what each decision costs alone, and the table of both."""
    rows: list[tuple[Mark, ...]] = []
    measured = _measured(chart, settings.task)
    for run, record in measured:
        for measure, details in record.details["measures"].items():
            rows += [(_waterfall(run, measure, details), _alone(run, measure, details))]
            rows += [(_table(run, measure, record, details),)]
    published = [number for number in chart.published if number.task == settings.task]
    rows += [(published_table(published),)] if published else []
    head = f"{data_label(chart)}: " + ", ".join(f"{run.name}, step {run.step:,}" for run, _ in measured)
    return Panel(title="Published protocol", head=(head,), rows=tuple(rows))


def _changed(details: dict[str, Any]) -> list[dict[str, Any]]:
    return [factor for factor in details["factors"] if factor["name"] in details["in_order"]]


def _waterfall(run: EvaluatedRun, measure: str, details: dict[str, Any]) -> XYPlot:
    """Draw the share after each change, each with a line from the share before it."""
    before, dots = details["published"], []
    tone = run_tone(run.index)
    dots.append(Marker("published", tone, 0, 100 * before, mark="diamond"))
    for index, factor in enumerate(_changed(details), 1):
        share = details["in_order"][factor["name"]]["share"]
        low, high = sorted((100 * before, 100 * share))
        dots.append(Marker(run.label, tone, index, 100 * share, low=low, high=high))
        before = share
    names = ("Published", *(factor["label"] for factor in _changed(details)))
    y = axis_over("%", [[end for dot in dots for end in (dot.y, dot.low, dot.high)]], percent=True)
    title = f"{MEASURES[measure]}, in order: {run.label}"
    marks: dict[str, Any] = {"dots": tuple(dots), "names": names, "lying": True, "tone": tone}
    return XYPlot(f"in-order-{measure}-{run.index}", title, categories("", names), y, **marks)


def _alone(run: EvaluatedRun, measure: str, details: dict[str, Any]) -> XYPlot:
    factors = [factor for factor in details["factors"] if factor["name"] in details["alone"]]
    dots = []
    for index, factor in enumerate(factors):
        cost = details["alone"][factor["name"]]
        points, low, high = (100 * cost[name] for name in ("difference", "low", "high"))
        dots.append(Marker(run.label, run_tone(run.index), index, points, low=low, high=high))
    names = tuple(factor["label"] for factor in factors)
    y = axis_over("points", [[end for dot in dots for end in (dot.low, dot.high)]], include=(0.0,))
    title = f"{MEASURES[measure]}, each alone: {run.label}"
    marks: dict[str, Any] = {"dots": tuple(dots), "names": names, "lying": True, "tone": run_tone(run.index)}
    return XYPlot(f"alone-{measure}-{run.index}", title, categories("", names), y, note="with 95 % intervals", **marks)


def _table(run: EvaluatedRun, measure: str, record: TaskRecord, details: dict[str, Any]) -> NumberTable:
    heads = ("Alone", "95 % interval", "p", "In order", "Then", "p")
    n = f"{details['n']:,} of {record.whole:,}" if details["n"] < record.whole else f"{details['n']:,}"
    first = f"{MEASURES[measure]}, {run.label}: {100 * details['published']:.2f} % by the published protocol, n = {n}"
    lines = [heading_row(f"{first}, {record.details['metric']}")]
    lines += [_line(factor, details) for factor in details["factors"]]
    lines.append(heading_row(f"{100 * details['changed']:.2f} % with every deviation"))
    return NumberTable(f"costs-{measure}-{run.index}", "What each decision costs", heads, tuple(lines), badges=False)


def _line(factor: dict[str, Any], details: dict[str, Any]) -> NumberRow:
    alone, after = (details[name].get(factor["name"]) for name in ("alone", "in_order"))
    interval = f"{_points(alone['low'])} to {_points(alone['high'])}" if alone else ""
    cells = [_points(alone["difference"]), interval, p_text(alone["p_holm"])] if alone else ["–", "", ""]
    then = f"{100 * after['share']:.2f} %" if after else ""
    cells += [_points(after["difference"]), then, p_text(after["p_holm"])] if after else ["–", "", ""]
    said = factor["why_not"] or f"{factor['published']} → {factor['changed']}"
    hint = f"Alone by {alone['test']}, p adjusted by Holm." if alone else ""
    return NumberRow(f"{factor['label']}: {said}", hint, tuple(cells))


def _points(share: float) -> str:
    return signed(100 * share, 2)


def records(chart: EvaluationChart, _settings: ProtocolSettings) -> Records:
    """Return a row per run, measure and decision."""
    header = ("dataset", "split", "run", "name", "step", "measure", "metric", "n", "published_share", "factor")
    kinds = ("difference", "low", "high", "p", "p_holm", "test", "share")
    more = (*(f"{order}_{kind}" for order in ("alone", "in_order") for kind in kinds), "why_not")
    return (*header, "published", "changed", *more), list(_rows(chart, kinds))


def _rows(chart: EvaluationChart, kinds: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for run, record in (*_measured(chart, "zero_shot"), *_measured(chart, "retrieval")):
        for measure, details in record.details["measures"].items():
            facts = (chart.dataset, chart.split, run.run, run.name, run.step, measure, record.details["metric"])
            for factor in details["factors"]:
                costs = [details[order].get(factor["name"], {}) for order in ("alone", "in_order")]
                numbers = [cost.get(kind) for cost in costs for kind in kinds]
                said = (factor["name"], factor["published"], factor["changed"])
                yield *facts, details["n"], details["published"], *said, *numbers, factor["why_not"]


CHART: Final = Chart(
    view="evaluate",
    label="Published protocol",
    question="Why is my number not the paper's?",
    cost="Grows with the stored answers of the evaluation.",
    method=METHOD,
    settings=ProtocolSettings,
    compute=compute,
    draw=draw,
    records=records,
)
