"""One replayed update: its pairs, their similarities before and after, and each pair's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.batches import MOST_LIKELY
from trainer.charts import ChartError
from trainer.charts.marks import (
    HeatMap,
    ImageRow,
    Mark,
    NumberRow,
    NumberTable,
    Panel,
    Points,
    RowImage,
    XYPlot,
    axis_over,
    run_tone,
)
from trainer.charts.measure import Measure
from trainer.charts.measures.replayed_step import change_maps, word_rows
from trainer.charts.spec import Chart, PerRun, Progress, Request, Target, per_run
from trainer.config.fields import option
from trainer.store import Workspace
from trainer.store.replay_records import ReplayRecord, WordReplay, read_replay, replayed_steps

METHOD: Final = """\
Order, crops and weights of a run are functions of (seed, step), so an update can be reproduced: `trainer replay RUN \
--step N` does, continues to the next checkpoint, and stores the update only if weights, buffers and moments are the \
same there, bit by bit. This chart draws what is stored.

Similarities: cosines of the batch's images (rows) and captions (columns), as the update saw them and with the weights \
it made; the change is their difference. Pairs are ordered by their loss, the largest first. The losses of the pairs \
are those whose mean is the loss of the batch.

Gradient on each embedding: its length along the sphere, one point for each pair; the longest are pulled most.

Agreement: cosine of the gradient that an objective has on the same embeddings with that of the run's own. Objectives \
are compared at their default temperatures; their losses are different quantities.

Suspected false negatives (a and b) have the same caption, or a cosine of at least 0.9 between their texts or their \
images. The last is circular: the embeddings are those of the model itself. The weight is the share of b among the \
negatives of a, the larger of both directions.

word2vec (Mikolov et al., 2013, https://arxiv.org/abs/1310.4546): a pair is a center with a word next to it, and its \
loss -ln σ(c₊ · w) - Σ ln σ(-c₋ · w) over the negatives that this update drew (equation 4; with the full softmax \
equation 2, in a tree equation 3). The maps show w · c of the most frequent words, in a tree ln p(context given \
center): the step moves w and c₊ towards each other, and w and each c₋ apart. A negative that is the context counts \
for nothing, and is not listed."""

SHOWN: Final = 8
"""Pictures in a row."""


_SIDES: Final = ("image", "text")
_TRIED: Final = 16
"""Newest replays that are tried where no step is chosen; damaged ones are skipped."""


@dataclass(frozen=True)
class ReplaySettings:
    """The replay, and the number of pairs drawn."""

    replayed: int = option(0, "Stored replay", "Its step; 0: the one replayed last.", low=0)
    pairs: int = option(64, "Pairs", "How many pairs are drawn, those of the largest loss.", low=2, high=512, log=True)


class RunReplay(Struct, frozen=True):
    """The replay shown of a run, None if none is stored; `steps` are the stored ones."""

    run: int
    name: str
    steps: tuple[int, ...]
    record: ReplayRecord | WordReplay | None


def replay_of(
    workspace: Workspace, target: Target, _request: Request, settings: ReplaySettings, _progress: Progress
) -> RunReplay:
    """Return the stored replay that the settings select.

    Raises:
        ChartError: Others are stored, but not that one; names them.
    """
    row = workspace.runs.get(target.run)
    stored = replayed_steps(row.folder)
    if settings.replayed and stored and settings.replayed not in stored:
        replayed = ", ".join(f"{step:,}" for step in stored)
        raise ChartError(
            f"Step {settings.replayed:,} of {row.short_name} was not replayed. Choose one of its replayed steps "
            f"({replayed}), or run trainer replay {row.id} --step {settings.replayed}."
        )
    candidates = [settings.replayed] if settings.replayed else stored[: -_TRIED - 1 : -1]
    record = next((replay for step in candidates if (replay := read_replay(row.folder, step)) is not None), None)
    return RunReplay(row.id, row.short_name, tuple(stored), record)


def draw(data: PerRun[RunReplay], settings: ReplaySettings) -> Panel:
    """Draw three heat maps per run, the images of the largest losses and suspected false negatives, and the numbers."""
    drawn = [(run, run.record, index) for run, index in zip(data.found, data.places, strict=True)]
    rows: list[tuple[Mark, ...]] = []
    for run, record, index in drawn:
        if isinstance(record, WordReplay):
            rows += word_rows(record, run.name, index)
        elif record is not None:
            order = np.argsort(-record.losses[0], kind="stable")[: settings.pairs]
            rows += [_maps(run, record, order, index), (_hardest(run, record, index),)]
            rows += [(_gradients(run, record.gradients, index),)] if record.gradients is not None else []
            rows += [(_suspected(run, record, index),)] if record.likely else []
    rows.append((_facts(data),))
    rows += [(_objectives(run, record, index),) for run, record, index in drawn if isinstance(record, ReplayRecord)]
    lacking = [run for run, record, _ in drawn if record is None]
    return Panel(
        title="A replayed update",
        head=tuple(
            f"{run.name}, step {record.step:,}: loss {record.loss:.4g}, n = {record.size:,} pairs; checked: "
            f"equal bit for bit to the checkpoint of step {record.verified:,}"
            for run, record, _ in drawn
            if record is not None
        ),
        rows=tuple(rows),
        commands=tuple(
            f"No step of {run.name} was replayed yet: trainer replay {run.run} --step N." for run in lacking
        ),
    )


def _maps(run: RunReplay, record: ReplayRecord, order: Int[np.ndarray, " k"], index: int) -> tuple[HeatMap, ...]:
    scores = np.stack([image[order] @ text[order].T for image, text in (record.before, record.after)])
    names = tuple(f"{k}: {record.captions[k]}" for k in order.tolist())
    return change_maps(index, scores, ("caption", "image"), "cosine", note=run.name, names=names)


def _hardest(run: RunReplay, record: ReplayRecord, index: int) -> ImageRow:
    before, after = (np.einsum("nd,nd->n", *pair) for pair in (record.before, record.after))
    cells = [
        RowImage(
            k, record.paths[k], record.captions[k],
            f"loss {record.losses[0, k]:.2f} · {before[k]:.2f} → {after[k]:.2f}",
        )
        for k in np.argsort(-record.losses[0], kind="stable")[:SHOWN].tolist()
    ]  # fmt: skip
    return ImageRow(
        f"hardest-{index}", f"{run.name}: largest losses", run_tone(index), tuple(cells), "cosine before → after"
    )


def _gradients(run: RunReplay, lengths: Float[np.ndarray, "2 n"], index: int) -> XYPlot:
    x, y = (
        axis_over(f"gradient on the {side}", [rows], include=(0,)) for side, rows in zip(_SIDES, lengths, strict=True)
    )
    points = (Points("pairs", run_tone(index), lengths.T),)
    return XYPlot(f"gradients-{index}", "Gradient on each embedding", x, y, points=points, note=run.name)


def _suspected(run: RunReplay, record: ReplayRecord, index: int) -> ImageRow:
    cells = []
    for number, (first, second, weight, _, reason) in enumerate(record.likely[: SHOWN // 2], start=1):
        for letter, k, text in (("a", first, reason), ("b", second, f"weight {weight:.4f}")):
            cells.append(RowImage(k, record.paths[k], record.captions[k], f"{number}{letter} · {text}"))
    most = " or more" if len(record.likely) == MOST_LIKELY else ""
    note = f"{len(record.likely)}{most} suspected; weight: of b among the negatives of a"
    return ImageRow(f"suspected-{index}", f"{run.name}: suspected false negatives", run_tone(index), tuple(cells), note)


def _facts(data: PerRun[RunReplay]) -> NumberTable:
    records = [run.record for run in data.found]
    measures: tuple[Measure[ReplayRecord | WordReplay], ...] = (
        Measure("Step", "Shown here.", lambda record: record.step, 0),
        Measure("Begun at the checkpoint of", "Step.", lambda record: record.began, 0),
        Measure("Equal bit for bit at", "The checkpoint of this step.", lambda record: record.verified, 0),
        Measure("Loss", "Of the batch.", lambda record: record.loss, 4),
        Measure("Pairs", "In the batch.", lambda record: record.size, 0),
    )
    stored = NumberRow("Replays stored", "Of this run.", tuple(float(len(run.steps)) for run in data.found), 0)
    lines = (stored, *(measure.row(records) for measure in measures))
    return NumberTable("replay", "Replay", tuple(run.name for run in data.found), lines, badges=False)


def _objectives(run: RunReplay, record: ReplayRecord, index: int) -> NumberTable:
    lines = (
        NumberRow("Loss", "On the embeddings before the update.", tuple(record.losses.mean(1).tolist()), 4),
        NumberRow("Agreement", "Cosine of its gradient with the run's own.", record.agreements, 3),
    )
    columns = (f"{record.labels[0]} (this run)", *record.labels[1:])
    title = f"{run.name}: gradients of objectives on this batch"
    return NumberTable(f"objectives-{index}", title, columns, lines, badges=False)


CHART: Final = Chart(
    view="explaining",
    label="Replay",
    question="How did one update change the pairs of its batch?",
    cost="Grows with the size of the batch, not of the data.",
    method=METHOD,
    settings=ReplaySettings,
    compute=per_run(replay_of),
    draw=draw,
)
