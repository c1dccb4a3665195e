"""The definition of a chart, read by the window, `trainer export`, `trainer analyze` and the tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from jaxtyping import Float
from msgspec import Struct

from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.marks import Mark, NumberTable, Panel, ShadedTable, Tone, XYPlot, run_tone
from trainer.charts.panels_beside import panels_beside
from trainer.charts.point_placement import PointPlacement
from trainer.charts.settings import NoSettings
from trainer.charts.snapshot_label import counted_notes, data_notes, data_of, different_steps, labels, steps_note
from trainer.config.fields import fields_of
from trainer.errors import NotYetError, UserError
from trainer.metrics import data_label
from trainer.store import Workspace

S = TypeVar("S")
D = TypeVar("D")


Records = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""A header, and the rows of the single items behind a chart."""
Rows = tuple[tuple[float, ...], ...]
"""Vectors that can be compared and hashed."""

Needs = Literal["none", "whole_runs", "one_run", "runs", "two_runs"]
"""`none`: settings alone. `whole_runs`: runs, whatever their snapshots.

`one_run`, `runs`: one snapshot, or one or more. `two_runs`: at least two snapshots.
"""


class Target(Struct, frozen=True):
    """A run at a step: one of the snapshots that a chart shows. `step` None is its last."""

    run: int | str
    step: int | None = None


@dataclass(frozen=True)
class Request:
    """The embeddings for a chart; A is the first target, and None selects the preferred split."""

    targets: tuple[Target, ...] = ()
    dataset: str | None = None
    split: str | None = None
    # Of texts or an image that no snapshot holds: for each target the rows that its model embeds, or a sentence
    # that says why it cannot; empty where nothing is to be embedded.
    vectors: tuple[Rows | str, ...] = ()
    # Of such vectors, for each target their points in the plane or why there are none; empty where the chart asks
    # for none.
    places: tuple[Rows | str, ...] = ()
    # Of a chart about classes: for each target the file of `trainer.charts.class_task` with the vectors of all
    # classes in all templates.
    class_texts: tuple[str, ...] = ()

    def vectors_of(self, target: Target) -> Float[np.ndarray, "n d"]:
        """Return the target's embeddings of the request's texts, in float64.

        Raises:
            ChartError: It could not, or nobody has asked it.
        """
        return self._rows(self.vectors, target, "The texts are not embedded yet: each run's model embeds them first.")

    def places_of(self, target: Target) -> Float[np.ndarray, "n 2"]:
        """Return where the target's embeddings of the request's texts stand in the plane, in float64.

        Raises:
            ChartError: They could not be placed, or nobody has asked for it.
        """
        return self._rows(self.places, target, "The texts are not placed yet: the process of projections does it.")

    def _rows(self, answers: tuple[Rows | str, ...], target: Target, missing: str) -> Float[np.ndarray, "n d"]:
        if len(answers) != len(self.targets):
            raise ChartError(missing)
        answer = answers[self.targets.index(target)]
        if isinstance(answer, str):
            raise ChartError(answer)
        return np.array(answer, dtype=np.float64)


class Outside(Struct, frozen=True):
    """Texts and image files that every target's model embeds: its rows of vectors, in this order.

    With `placement` the texts' vectors are placed in the plane, too. Texts `of_words` are single words: a run without a
    text tower that learned vectors of words answers by those, with zeros for words that it has none of.
    """

    request: Request
    texts: tuple[str, ...]
    files: tuple[str, ...]
    placement: PointPlacement | None = None
    of_words: bool = False


@dataclass(frozen=True, kw_only=True)
class Chart(Generic[S, D]):
    """A chart: its texts, settings, computation and drawing."""

    view: str
    label: str
    question: str  # One sentence: what it answers.
    # The slow part. Equal requests with equal settings (but those that only redraw) are computed once. A generator
    # yields ever fuller data, its cheap parts first: the window draws each.
    compute: Callable[[Workspace, Request, S, Progress], D | Iterator[D]]
    draw: Callable[[D, S], Panel]  # The quick and pure part: settings that only redraw run it alone.
    # A frozen dataclass whose fields are each a `trainer.config.fields.option`.
    name: str = ""  # Of the view's tab, of `trainer export NAME` and of its test; empty: that of its file.
    settings: type[S] = NoSettings  # type: ignore[assignment]
    needs: Needs = "runs"  # What must be chosen for it.
    method: str = ""  # What the help shows: formula, paper, caveats; plain text. Empty: that of its view.
    cost: str = ""  # How the time to compute it grows, and at which n it samples; one or two sentences.
    # What `trainer analyze NAME` prints, a dictionary a column; None: the tables of the panel.
    values: Callable[[D, S], list[dict[str, Any]]] | None = None
    # A header and rows of the single items behind the chart, for `--records`; None: there are none.
    records: Callable[[D, S], Records] | None = None
    # Texts that each target's model embeds first; their vectors come with the request. None: there are none.
    sentences: Callable[[Workspace, Request, S], tuple[str, ...]] | None = None
    of_words: bool = False  # Whether they are single words, which a run without a text tower may have vectors of.
    pictures: Callable[[Workspace, Request, S], tuple[str, ...]] | None = None  # Image files that it embeds after them.
    # How the vectors of the texts are placed in the plane for the request; None: they are not.
    placement: Callable[[S], PointPlacement | None] | None = None
    # The request with the snapshots that are computed, where those are not the ones asked for; a model of one
    # that has no checkpoint is then no failure of the others.
    targets: Callable[[Workspace, Request, S], Request] | None = None
    preview: bool = False  # Whether the data of other settings are drawn, quickly, until those for these are computed.
    quick: bool = False  # Whether computing takes less than a frame, so that the window waits for it.

    def __post_init__(self) -> None:
        file = self.draw.__module__.rpartition(".")[2]
        object.__setattr__(self, "name", self.name or file.replace("_", "-"))

    @property
    def help_text(self) -> str:
        """The method with what it costs, as the help shows it; empty where the view has a help of its own."""
        return "\n\n".join(filter(None, (self.method, self.cost))) if self.method else ""

    def check(self, request: Request) -> None:
        """Check that there are as many snapshots as the chart needs.

        Raises:
            ChartError: There are not; says how many.
        """
        least = {"none": 0, "two_runs": 2}.get(self.needs, 1)
        if len(request.targets) < least:
            two = "Choose two runs, or one run at two steps" if least == 2 else "Choose a run"
            raise ChartError(f"{self.label} needs {'two snapshots' if least == 2 else 'a run'}. {two}.")

    def result(self, workspace: Workspace, request: Request, settings: S, progress: Progress) -> D:
        """Check the request and return the computed data."""
        return deque(self.results(workspace, request, settings, progress), maxlen=1).pop()

    def results(self, workspace: Workspace, request: Request, settings: S, progress: Progress) -> Iterator[D]:
        """Check the request and yield ever fuller data; the last are the whole."""
        self.check(request)
        yield from stages(self.compute, workspace, self.with_targets(workspace, request, settings), settings, progress)

    def with_targets(self, workspace: Workspace, request: Request, settings: S) -> Request:
        """Return the request with the snapshots that are computed."""
        return request if self.targets is None else self.targets(workspace, request, settings)

    def outside(self, workspace: Workspace, request: Request, settings: S) -> Outside:
        """Return what the models of the request's snapshots embed first."""
        request = self.with_targets(workspace, request, settings)
        texts, files = (
            (part(workspace, request, settings) if part else ()) for part in (self.sentences, self.pictures)
        )
        placement = self.placement(settings) if self.placement else None
        return Outside(request, texts, files, placement, self.of_words)

    def panel(self, data: D, settings: S) -> Panel:
        """Return the panel; its warnings begin with what cannot be shown, its notes end with what was counted once.

        Different steps of two runs are noted where no line under the title names them.
        """
        drawn = self.drawn(data, settings)
        problems, counted = tuple(getattr(data, "problems", ())), counted_notes(data)
        runs, indices = (data.found, data.places) if isinstance(data, PerRun) else ((), ())
        other_data = data_notes(runs)
        of_steps = "" if drawn.head else steps_note(runs)
        notes = (*drawn.notes, *filter(None, (of_steps,)), *counted)
        warnings = (*problems, *other_data, *drawn.warnings)
        if other_data:
            drawn = _selecting_pairs_of(drawn, run_tone(indices[0]))
        return replace(drawn, warnings=warnings, notes=notes, steps=different_steps(runs))

    def drawn(self, data: D, settings: S) -> Panel:
        """Return what it draws; runs that were measured on different data have no plot and no table in common."""
        if not isinstance(data, PerRun) or not data_notes(data.found):
            return self.draw(data, settings)
        parts = data.by_data()
        panels = [self.draw(part, settings) for part in parts]  # type: ignore[arg-type]
        return panels_beside(panels, [part.name for part in parts], [part.places for part in parts])

    def numbers(self, data: D, settings: S) -> list[dict[str, Any]]:
        """Return what is printed: one dictionary per column."""
        return self.values(data, settings) if self.values else numbers_of(self.drawn(data, settings))

    def computed_of(self, settings: S) -> S:
        """Return the settings without those that only affect drawing; equal ones give the same result."""
        plain = {field.name: field.default for field in fields_of(self.settings) if field.redraws}
        return replace(settings, **plain) if plain else settings  # type: ignore[type-var]


def _selecting_pairs_of(panel: Panel, tone: Tone) -> Panel:
    """Return the panel whose plots select pairs, and mark the selected ones, in the run of this tone only.

    What is selected are rows of the first run's data: of other data, the same rows are other pairs.
    """

    def linked(mark: Mark) -> Mark:
        if not isinstance(mark, XYPlot) or mark.tone == tone or mark.ids_are != "pairs":
            return mark
        points = tuple(replace(cloud, ids=None) for cloud in mark.points)
        return replace(mark, rug=None, brushes="", points=points)

    return replace(panel, rows=tuple(tuple(map(linked, row)) for row in panel.rows))


@dataclass(frozen=True)
class PerRun(Generic[D]):
    """What a chart computed for each snapshot separately."""

    found: tuple[D, ...]  # Of those that could be measured, in the order of the targets.
    places: tuple[int, ...]  # The place of each among the targets; 0 is A.
    problems: tuple[str, ...] = ()  # Why the others could not be, a sentence each.

    @property
    def labels(self) -> list[str]:
        """The name of each run, with its step where a run is there at two."""
        return labels(self.found)

    @property
    def named(self) -> list[tuple[D, int, str]]:
        """Each with its place and the label of its run."""
        return list(zip(self.found, self.places, self.labels, strict=True))

    def by_data(self) -> tuple[PerRun[D], ...]:
        """Return those of each data by themselves, in the order of their first run."""
        parts: dict[object, list[tuple[D, int]]] = {}
        for each in zip(self.found, self.places, strict=True):
            measured = data_of(each[0])
            parts.setdefault(measured and measured[1], []).append(each)
        return tuple(PerRun(*zip(*part, strict=True)) for part in parts.values())

    @property
    def name(self) -> str:
        """Of the only run, or of the data of several."""
        measured = [each for each in map(data_of, self.found) if each is not None]
        names = dict.fromkeys(name for name, _ in measured)
        return ", ".join(names) if len(names) == 1 or not measured else data_label(measured[0][1])


def stages(compute: Callable[..., D | Iterator[D]], *arguments: Any) -> Iterator[D]:
    """Yield what a generator yields for these arguments, or what another function returns."""
    computed = compute(*arguments)
    if isinstance(computed, Generator):
        yield from computed
    else:
        yield computed  # type: ignore[misc]


def per_run(
    compute: Callable[[Workspace, Target, Request, S, Progress], D | Iterator[D]],
) -> Callable[[Workspace, Request, S, Progress], Iterator[PerRun[D]]]:
    """Convert a `compute` for one target to one for all targets, where a failure does not affect others.

    It yields what is known so far: the first part of every target, then the next ones, if `compute` is a generator.
    """

    def compute_each(workspace: Workspace, request: Request, settings: S, progress: Progress) -> Iterator[PerRun[D]]:
        results, problems = dict[int, D](), dict[int, UserError]()
        shares = [0.0] * len(request.targets)

        def tell(index: int, share: float, note: str) -> None:
            shares[index] = share
            progress(sum(shares) / len(shares), note)

        going = {
            index: stages(compute, workspace, target, request, settings, partial(tell, index))
            for index, target in enumerate(request.targets)
        }
        while going:
            for index, parts in [*going.items()]:
                try:
                    results[index] = next(parts)
                    yield _known(results, problems)
                except StopIteration:
                    del going[index]
                except UserError as problem:
                    del going[index]
                    results.pop(index, None)
                    problems[index] = problem
        if not results:
            raise joined([problems[index] for index in sorted(problems)])
        yield _known(results, problems)

    return compute_each


def _known(results: Mapping[int, D], problems: Mapping[int, UserError]) -> PerRun[D]:
    indices = tuple(sorted(results))
    return PerRun(tuple(map(results.__getitem__, indices)), indices, tuple(str(problems[i]) for i in sorted(problems)))


def joined(problems: Sequence[UserError]) -> UserError:
    """Return one error of several: a `NotYetError` where all are, because what every run lacks yet is no failure."""
    sentences = " ".join(map(str, problems))
    if not problems or not all(isinstance(each, NotYetError) for each in problems):
        return ChartError(sentences)
    problems[0].args = (sentences,)
    return problems[0]


def no_data(_workspace: Workspace, _request: Request, _settings: Any, _progress: Progress) -> None:
    """Return None: the `compute` of a chart drawn from its settings alone."""


def numbers_of(panel: Panel) -> list[dict[str, Any]]:
    """Return the tables of a panel, one dictionary per column."""
    columns: list[dict[str, Any]] = []
    for mark in panel.marks:
        if isinstance(mark, NumberTable):
            for index, column in enumerate(mark.columns):
                values = {label: line.values[index] for label, line in mark.named()}
                columns.append({"table": mark.title, "column": column} | values)
        elif isinstance(mark, ShadedTable):
            for name, row in zip(mark.rows, mark.values.tolist(), strict=True):
                columns.append({"table": mark.title, "column": name} | dict(zip(mark.columns, row, strict=True)))
    return columns


def targets_of(runs: Sequence[int | str], steps: Sequence[int | None] = ()) -> tuple[Target, ...]:
    """Return the runs at their steps: one step for all, one per run, or several of a single run.

    Raises:
        ChartError: As many steps as runs are needed.
    """
    if len(runs) == 1 and len(steps) > 1:
        return tuple(Target(runs[0], step) for step in steps)
    if len(steps) <= 1:
        return tuple(Target(run, steps[0] if steps else None) for run in runs)
    if len(steps) != len(runs):
        raise ChartError(f"{len(steps)} steps for {len(runs)} runs: name one step for all, or one for each run.")
    return tuple(Target(run, step) for run, step in zip(runs, steps, strict=True))


def request_words(request: Request) -> list[str]:
    """Return the request as command-line arguments."""
    if not request.targets:
        return []
    steps = [target.step for target in request.targets]
    runs = [str(target.run) for target in request.targets]
    # One run at several steps is named once.
    arguments = ["--runs", *(runs[:1] if len({*runs}) == 1 else runs)]
    if any(step is not None for step in steps):
        same = len({*steps}) == 1 and not (len(steps) > 1 and len({*runs}) == 1)
        arguments += ["--step", *("last" if step is None else str(step) for step in (steps[:1] if same else steps))]
    for name, value in (("--dataset", request.dataset), ("--split", request.split)):
        arguments += [name, value] if value is not None else []
    return arguments
