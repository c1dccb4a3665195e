"""Whether runs bind words: accuracy of choosing the caption among its hard negatives, per kind of change."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from msgspec import Struct

from trainer.analysis.caption_swaps import KINDS
from trainer.analysis.intervals import wilson
from trainer.analysis.number_text import signed, signed_ends
from trainer.analysis.progress import Progress
from trainer.analysis.significance import McNemar, Paired, holm, mcnemar, paired_shares
from trainer.charts import ChartError
from trainer.charts.evaluation import LETTERS, EvaluationChart, evaluation_at
from trainer.charts.marks import Marker, NumberRow, NumberTable, Panel, XYPlot, axis_over, categories, run_tone
from trainer.charts.measures.groups import p_text
from trainer.charts.spec import Chart, Records, Request
from trainer.metrics import data_label
from trainer.store import Workspace
from trainer.store.question import question_text
from trainer.store.task_records import TaskRecord

METHOD: Final = """\
A question is a picture x, its caption t and captions that are false of it. It is answered right where \
s(x, t) > s(x, negative) for every negative of the kind; ties are wrong (SugarCrepe, Hsieh et al. 2023, \
arXiv 2306.14610). With one negative a guess is right in half of the cases. A model that reads \
captions as bags of words cannot tell swaps apart (Yuksekgonul et al. 2023, arXiv 2210.01936).

Swaps of captions exchange two colors, turn a relation into its opposite, or exchange what stands around it \
(Winoground, Thrush et al. 2022, arXiv 2204.03162). Of Scenes each swap is exactly the caption of another scene.

Intervals are Wilson's, 95 %. B against A has Newcombe's interval and exact McNemar's p over the questions of both, \
adjusted for the kinds (Holm)."""
CHANCE: Final = 50.0
_FAR: Final = 75.0
Key = tuple[str, str, str]
"""Picture, kind and false caption of a question."""


class ChoiceLine(Struct, frozen=True):
    """One kind of change."""

    kind: str
    values: tuple[tuple[float, int] | None, ...]  # Share and n of each run; None where it was not asked.
    paired: Paired | None  # B minus A on the questions of both; None without them.
    test: McNemar | None
    p: float  # Adjusted; NaN without.

    @property
    def label(self) -> str:
        """The kind in words."""
        return dict(KINDS).get(self.kind, self.kind.replace("_", " "))  # type: ignore[call-overload,no-any-return]


class CaptionChoiceChart(Struct, frozen=True):
    """The runs' evaluations on the data set, and a line per kind."""

    evaluations: EvaluationChart
    lines: tuple[ChoiceLine, ...]


def compute(workspace: Workspace, request: Request, _settings: Any, _progress: Progress) -> CaptionChoiceChart:
    """Return the runs' stored answers on the requested data set or the one measured last.

    Raises:
        ChartError: No run has chosen captions there.
    """
    chart = evaluation_at(workspace, request)
    records = [run.tasks.get("caption_choice") for run in chart.runs]
    if not any(records):
        raise ChartError(
            f"No run has chosen captions on {data_label(chart)} yet. Run trainer evaluate RUN --task "
            "caption_choice, or choose that task in Evaluate."
        )
    kinds = dict.fromkeys(kind for record in records if record for kind in record.details["kinds"])
    lines = [_line(kind, records) for kind in kinds]
    adjusted = holm(np.array([line.p for line in lines], np.float64)).tolist()
    lines = [ChoiceLine(each.kind, each.values, each.paired, each.test, p) for each, p in zip(lines, adjusted)]
    return CaptionChoiceChart(chart, tuple(lines))


def _line(kind: str, records: list[TaskRecord | None]) -> ChoiceLine:
    answers = [_answers(record, kind) if record else {} for record in records]
    values = tuple((float(np.mean([*of.values()])), len(of)) if of else None for of in answers)
    both = [key for key in answers[0] if key in answers[1]] if len(answers) > 1 else []
    if not both:
        return ChoiceLine(kind, values, None, None, math.nan)
    a, b = (np.array([of[key] for key in both], bool) for of in answers[:2])
    test = mcnemar(a, b)
    return ChoiceLine(kind, values, paired_shares(a, b), test, test.p)


def _answers(record: TaskRecord, kind: str) -> dict[Key, bool]:
    columns = (record.arrays[name].tolist() for name in ("path", "kind", "caption", "right"))
    return {(path, of, caption): right for path, of, caption, right in zip(*columns, strict=True) if of == kind}


def draw(chart: CaptionChoiceChart, _settings: Any) -> Panel:
    """Draw the accuracy of each kind with its interval, and the table of differences."""
    runs = chart.evaluations.runs
    gap, middle, dots = 0.5 / len(runs), (len(runs) - 1) / 2, []
    for index, line in enumerate(chart.lines):
        for run, value in zip(runs, line.values, strict=True):
            if value is not None:
                low, high = (100 * end for end in wilson(*value))
                at = index + gap * (run.index - middle)
                dots.append(Marker(run.label, run_tone(run.index), at, 100 * value[0], low=low, high=high))
    names = tuple(line.label for line in chart.lines)
    ends = [end for dot in dots for end in (dot.low, dot.high)]
    # Near the ceiling the guess is far away, and would squeeze what differs.
    y = axis_over("%", [ends], include=(CHANCE,) if min(ends) < _FAR else (), percent=True)
    marks: dict[str, Any] = {"dots": tuple(dots), "names": names, "lying": True, "note": "with 95 % intervals"}
    plot = XYPlot("choices", "Right captions", categories("", names), y, **marks)
    questions = dict.fromkeys(
        question_text(run.tasks["caption_choice"].question) for run in runs if "caption_choice" in run.tasks
    )
    head = f"{data_label(chart.evaluations)}. {'; '.join(questions)}"
    return Panel(title="Caption choice", head=(head,), rows=((plot,), (_table(chart),)), notes=("A guess: 50 %.",))


def _table(chart: CaptionChoiceChart) -> NumberTable:
    runs = chart.evaluations.runs
    both = len(runs) > 1
    names = (f"{LETTERS[run.index]} · {run.label}" for run in runs)
    heads = ("n", *names, *(("B against A", "95 % interval", "p") * both))
    rows = []
    for line in chart.lines:
        n = max(value[1] for value in line.values if value)
        cells = [f"{n:,}", *(f"{100 * value[0]:.1f} %" if value else "–" for value in line.values)]
        if both and line.paired is not None:
            ends = signed_ends(100 * line.paired.low, 100 * line.paired.high)
            cells += [signed(100 * line.paired.difference), ends, p_text(line.p)]
        elif both:
            cells += ["–", "", ""]
        better = {1 + int(line.paired.difference > 0)} if line.paired is not None and line.p < 0.05 else set()
        hint = f"Right in A alone: {line.test.only_a:,}; in B alone: {line.test.only_b:,}" if line.test else ""
        rows.append(NumberRow(line.label, hint, tuple(cells), best=frozenset(better)))
    return NumberTable("numbers", "Kinds of change", heads, tuple(rows), badges=False)


def records(chart: CaptionChoiceChart, _settings: Any) -> Records:
    """Return a row per question of each run, with its margin."""
    header = ("run", "name", "step", "image", "kind", "caption", "negative", "margin", "right")
    names = ("path", "kind", "caption", "negative", "margin", "right")
    return header, [
        (run.run, run.name, run.step, *row)
        for run in chart.evaluations.runs
        if (record := run.tasks.get("caption_choice"))
        for row in zip(*(record.arrays[name].tolist() for name in names), strict=True)
    ]


CHART: Final = Chart(
    view="evaluate",
    label="Caption choice",
    question="Do the runs bind words, or read captions as bags of words?",
    cost="Grows with the stored answers of the evaluation.",
    method=METHOD,
    compute=compute,
    draw=draw,
    records=records,
)
