"""Probe strip: what pinned pictures and sentences find in each run at every snapshot, as a film strip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int
from msgspec import Struct

from trainer.analysis.progress import Progress
from trainer.analysis.search import products
from trainer.charts import ChartError
from trainer.charts.distinct_hits import best_distinct
from trainer.charts.marks import ImageRow, Panel, RowImage, run_tone
from trainer.charts.opened_snapshot import OpenedSnapshot, open_target
from trainer.charts.probes import PinnedProbe, pinned
from trainer.charts.snapshot_label import SnapshotLabel
from trainer.charts.snapshots import choose_snapshot, course_of
from trainer.charts.spec import Chart, Request, Target
from trainer.config.fields import option
from trainer.metrics import data_label
from trainer.store import Workspace
from trainer.store.snapshot_files import Items

METHOD: Final = """\
At every snapshot of a run, the items with the largest cosine to each probe. A sentence finds pictures, and a picture \
captions. The query of a picture or sentence of the data is its embedding in the snapshot itself; any other one is \
embedded by the checkpoint of that step, where it is kept.

Equal pictures and equal captions are one hit. Hits with the probe's own picture or caption are marked. Cosines are \
not comparable across runs or steps: compare the order of the hits."""

MOST_STEPS: Final = 40


@dataclass(frozen=True)
class StripSettings:
    """The probes; without any those that are pinned in the workspace."""

    image: tuple[str, ...] = option((), "Pictures", "Probes: picture files.", control=False)
    text: tuple[str, ...] = option((), "Sentences", "Probes: sentences.", control=False)
    k: int = option(5, "Hits", "Of each probe at each step.", low=1, high=12)
    among: Literal["other", "image", "text"] = option(
        "other",
        "Find",
        "What is found: captions for a picture and pictures for a sentence, or one of them for both.",
        named={"other": "the other modality", "image": "pictures", "text": "captions"},
    )
    steps: int = option(6, "Snapshots", "Of each run, evenly over training.", low=1, high=MOST_STEPS)


class ProbeHits(Struct, frozen=True):
    """What a probe finds."""

    target: Literal["image", "text"]  # What was searched.
    rows: Int[np.ndarray, " k"]  # Of the snapshot, best first.
    cosines: Float[np.ndarray, " k"]  # Of probe and hits.
    own: tuple[bool, ...]  # Of each hit, whether it has the probe's picture or caption.
    problem: str = ""  # Why there are none; else empty.


@dataclass(frozen=True, kw_only=True)
class StripFrame(SnapshotLabel):
    """All probes at one snapshot of one run; `place` is that of the run, 0 is A."""

    place: int
    items: Items
    hits: tuple[ProbeHits, ...]


class Strip(Struct, frozen=True):
    """All frames, run by run and step by step."""

    probes: tuple[PinnedProbe, ...]
    frames: tuple[StripFrame, ...]


def probes_of(workspace: Workspace, settings: StripSettings) -> tuple[PinnedProbe, ...]:
    """Return the probes of the settings, or the pinned ones.

    Raises:
        ChartError: There are none.
    """
    named = (
        *(PinnedProbe("image", value) for value in settings.image),
        *(PinnedProbe("text", value) for value in settings.text),
    )
    if not (probes := tuple(dict.fromkeys(named)) or pinned(workspace)):
        raise ChartError("There is no probe. Pin a picture or a sentence, or name one: --text 'a red circle'.")
    return probes


def every_step(workspace: Workspace, request: Request, settings: StripSettings) -> Request:
    """Return the request for the snapshots of each run, evenly over its steps."""
    targets: list[Target] = []
    for run in dict.fromkeys(target.run for target in request.targets):
        row = workspace.runs.get(run)
        last = choose_snapshot(workspace, row, dataset=request.dataset, split=request.split)
        steps = [snapshot_row.step for snapshot_row in course_of(workspace, last)]
        chosen = np.unique(np.linspace(0, len(steps) - 1, min(settings.steps, len(steps))).round().astype(int))
        targets += [Target(run, steps[at]) for at in chosen]
        request = replace(request, dataset=last.dataset, split=last.split)
    return replace(request, targets=tuple(targets))


def outside(workspace: Workspace, request: Request, settings: StripSettings) -> tuple[PinnedProbe, ...]:
    """Return the probes that the data of some run do not hold, which its models embed: sentences first."""
    targets = {target.run: target for target in request.targets}
    opened = [open_target(workspace, target, request) for target in targets.values()]
    probes = [probe for probe in probes_of(workspace, settings) if any(_inside(each, probe) is None for each in opened)]
    return tuple(sorted(probes, key=lambda probe: probe.kind == "image"))


def _inside(opened: OpenedSnapshot, probe: PinnedProbe) -> Float[np.ndarray, " d"] | None:
    vectors = opened.snapshot.image if probe.kind == "image" else opened.snapshot.text
    row = probe.row_in(opened.snapshot.items)
    return None if vectors is None or row < 0 else np.asarray(vectors[row], np.float32)


def compute(workspace: Workspace, request: Request, settings: StripSettings, progress: Progress) -> Strip:
    """Search every snapshot for every probe.

    Raises:
        ChartError: There is no probe, or a run has no snapshot.
    """
    probes, embedded = probes_of(workspace, settings), outside(workspace, request, settings)
    runs, frames = list(dict.fromkeys(target.run for target in request.targets)), []
    for number, target in enumerate(request.targets):
        progress(number / len(request.targets), "searching the snapshots")
        opened = open_target(workspace, target, request)
        hits = tuple(_hits(opened, request, target, probe, embedded, settings) for probe in probes)
        frames.append(StripFrame(**opened.label, place=runs.index(target.run), items=opened.snapshot.items, hits=hits))
    return Strip(probes, tuple(frames))


def _hits(
    opened: OpenedSnapshot,
    request: Request,
    target: Target,
    probe: PinnedProbe,
    embedded: tuple[PinnedProbe, ...],
    settings: StripSettings,
) -> ProbeHits:
    among_tower = ("text" if probe.kind == "image" else "image") if settings.among == "other" else settings.among
    snapshot, items = opened.snapshot, opened.snapshot.items
    vectors = snapshot.image if among_tower == "image" else snapshot.text
    none = (np.zeros(0, np.int64), np.zeros(0, np.float32), ())
    if vectors is None:
        return ProbeHits(among_tower, *none, "the run has no such tower")
    query = _inside(opened, probe)
    try:
        query = request.vectors_of(target)[embedded.index(probe)].astype(np.float32) if query is None else query
    except ChartError as problem:
        return ProbeHits(among_tower, *none, str(problem))
    rows, cosines = best_distinct(products(vectors, query), snapshot, among_tower, settings.k)
    among = items.caption if probe.kind == "text" else items.path
    return ProbeHits(among_tower, rows, cosines, tuple(among[row] == probe.value for row in rows.tolist()))


def draw(data: Strip, _settings: StripSettings) -> Panel:
    """Draw for each probe a row of hits at each step, the runs side by side."""
    runs = [
        [frame for frame in data.frames if frame.place == index] for index in sorted({f.place for f in data.frames})
    ]
    rows: list[tuple[ImageRow, ...]] = []
    for number, probe in enumerate(data.probes):
        rows.append((_heading(number, probe, data.frames[0].items),))
        for at in range(max(map(len, runs))):
            rows.append(tuple(_row(number, frames[at]) for frames in runs if at < len(frames)))
    first = data.frames[0]
    head = f"{data_label(first)}, {len(first.items):,} pairs"
    return Panel(title="Probe strip", head=(head,), rows=tuple(rows), notes=("Compare the order of the hits.",))


def _heading(number: int, probe: PinnedProbe, items: Items) -> ImageRow:
    row = probe.row_in(items)
    if probe.kind == "text":
        return ImageRow(f"probe-{number}", probe.words, "quiet", (), "probe")
    caption = items.caption[row] if row >= 0 else ""
    return ImageRow(f"probe-{number}", caption or probe.words, "quiet", (RowImage(row, probe.value, caption, "probe"),))


def _row(number: int, frame: StripFrame) -> ImageRow:
    hits, items = frame.hits[number], frame.items
    cells = tuple(
        RowImage(row, items.path[row], items.caption[row] or items.label[row], f"{cosine:.3f}", strong=is_own)
        for row, cosine, is_own in zip(hits.rows.tolist(), hits.cosines.tolist(), hits.own, strict=True)
    )
    title = f"{frame.name}, step {frame.step:,}"
    return ImageRow(f"hits-{number}-{frame.place}-{frame.step}", title, run_tone(frame.place), cells, hits.problem)


def values(data: Strip, _settings: StripSettings) -> list[dict[str, Any]]:
    """Return one dictionary per probe, run and step: its hits, best first, with captions and cosines."""
    return [
        {"probe": probe.value, "kind": probe.kind, "run": frame.run, "name": frame.name, "step": frame.step}
        | {"dataset": frame.dataset, "split": frame.split, "n": len(frame.items), "found": hits.target}
        | {"rows": hits.rows.tolist(), "cosines": hits.cosines.tolist(), "own": list(hits.own)}
        | {"captions": [frame.items.caption[row] for row in hits.rows.tolist()], "problem": hits.problem}
        for number, probe in enumerate(data.probes)
        for frame in data.frames
        for hits in (frame.hits[number],)
    ]


CHART: Final = Chart(
    view="probes",
    label="Probe strip",
    question="Search results of pinned pictures and sentences over training.",
    cost="Grows with n, the probes and the snapshots, at most 40 of each run.",
    method=METHOD,
    settings=StripSettings,
    compute=compute,
    draw=draw,
    values=values,
    targets=every_step,
    sentences=lambda *asked: tuple(one.value for one in outside(*asked) if one.kind == "text"),
    pictures=lambda *asked: tuple(one.value for one in outside(*asked) if one.kind == "image"),
)
