"""Open vectors as a run: rows are drawn, and copied as a snapshot in one pass. What costs more waits for a question."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Int

from trainer import config
from trainer.analysis.camera_3d import component_points
from trainer.analysis.projection import ScatterSum
from trainer.analysis.worker_threads import single_blas_thread
from trainer.charts.matching import units_of
from trainer.charts.snapshots import choose_snapshot
from trainer.store import Items, RunLog, Snapshot, Workspace, disk, read_snapshot
from trainer.store.columns import taken
from trainer.store.component_files import WORTH_KEEPING, keep_components
from trainer.store.rows import MOST_STEP
from trainer.untrusted.files import expanded
from trainer.vectors.item_table import check_items, check_order, read_items
from trainer.vectors.matrices import FoundVectors, Matrix, VectorError, files_of_steps, find
from trainer.vectors.recall import MAIN, MeasuredRecall, measure_step, reporting
from trainer.vectors.step_files import Side
from trainer.vectors.unit_copy import copy_unit_rows

SPLIT: Final = "vectors"
MOST_COSINES: Final = 2**26
"""With so many cosines every question is ranked when vectors are opened, which takes a third of a second; of more,
so many questions are drawn that no more are computed: 8,192 pairs with each other, 671 questions of 100,000."""


@dataclass(frozen=True)
class OpenedVectors:
    """What was kept: rows of the files, those in the snapshot, and those that are no vectors; a note on their items."""

    rows: int
    kept: int
    left_out: int
    width: int
    note: str = ""
    steps: int = 1  # How many steps were opened; the other numbers are of the last of them.
    recall: str = ""  # In words, where only some questions were asked.


def run_of(data: config.Vectors, name: str = "") -> config.Run:
    """Return the run that opens these vectors.

    Raises:
        VectorError: They cannot be opened, or images and texts do not belong together.
    """
    vectors = located(data)
    sample(vectors.first.rows, 2)
    check_items(vectors.items, vectors.first.rows)
    both = vectors.image is not None and vectors.text is not None
    side = config.ImagesElsewhere if vectors.image is not None else config.TextsElsewhere
    return config.run_elsewhere(name or data.called, data, config.PairsElsewhere() if both else side())


def located(data: config.Vectors) -> FoundVectors:
    """Return where the vectors lie; one path without a side may hold both.

    Raises:
        VectorError: As `find`, or the two sides have other numbers of rows or widths, or name rows in another order.
    """
    sources: tuple[tuple[Side, str, str], ...] = (
        ("image", data.image_vectors, data.image_column),
        ("text", data.text_vectors, data.text_column),
    )
    sides = {side: find(expanded(path), side, column) for side, path, column in sources if path.strip()}
    image = sides["image"].image if "image" in sides else None
    text = sides["text"].text if "text" in sides else None
    tables: list[tuple[Path, ...]] = [(expanded(data.items),)] if data.items.strip() else []
    tables += [side_vectors.items for side_vectors in sides.values() if side_vectors.items]
    if image is not None and text is not None:
        _check_pairs(image, text)
        check_order(sides["image"].columns, sides["text"].columns)
    columns = {
        name: values for side_vectors in reversed(sides.values()) for name, values in side_vectors.columns.items()
    }
    notes = dict.fromkeys(side_vectors.note for side_vectors in sides.values() if side_vectors.note)
    items, *beside = dict.fromkeys(tables) or [()]
    return FoundVectors(image, text, items, columns, " ".join(notes), tuple(beside))


def _check_pairs(image: Matrix, text: Matrix) -> None:
    if image.rows != text.rows:
        raise VectorError(
            f"There are {image.rows:,} images and {text.rows:,} texts: row i of both must be one pair. Open them as "
            "two sets, or repeat the rows of the smaller one."
        )
    if image.width != text.width:
        raise VectorError(
            f"Images have {image.width} numbers and texts {text.width}, so no cosine compares them. Open them as two "
            "sets, once with --image and once with --text: Compare > Representation similarity takes both."
        )


def at_steps(data: config.Vectors) -> dict[int, config.Vectors]:
    """Return step -> what to open there, ascending; what is no folder of steps is step 0, or is that of each step.

    Raises:
        VectorError: The two sides have other steps, or steps have other rows or widths.
    """
    paths: dict[Side, str] = {"image": data.image_vectors, "text": data.text_vectors}
    folders = {side: files_of_steps(expanded(path)) for side, path in paths.items() if path.strip()}
    steps = {tuple(files) for files in folders.values() if files}
    if len(steps) > 1:
        raise VectorError("Images and texts are of other steps: each step needs a file of both.")
    by_step = {}
    for step in next(iter(steps)) if steps else ():
        of_side = {side: str(_file_of(side, files[step])) for side, files in folders.items() if files}
        image, text = of_side.get("image", data.image_vectors), of_side.get("text", data.text_vectors)
        by_step[step] = replace(data, image_vectors=image, text_vectors=text)
    shapes = {step: _shape_of(of_step) for step, of_step in by_step.items()}
    for step, shape in shapes.items():
        if shape != (first := next(iter(shapes.values()))):
            raise VectorError(
                f"Step {step} has {shape[0]:,} rows of {shape[1]} numbers, and the first step {first[0]:,} of "
                f"{first[1]}: row i of each step must be one item. Open the steps as several runs."
            )
    return by_step or {0: data}


def _file_of(side: Side, files: Mapping[Side | None, Path]) -> Path:
    file = files.get(side, files.get(None))
    if file is None:
        raise VectorError(f"{next(iter(files.values())).name} has no file of {side}s of its step next to it.")
    return file


def _shape_of(data: config.Vectors) -> tuple[int, int]:
    matrix = located(data).first
    return matrix.rows, matrix.width


def open_vectors(
    log: RunLog, data: config.Vectors, ready: Callable[[OpenedVectors], None] = lambda _: None
) -> OpenedVectors:
    """Write the snapshots of the run, register them, and measure how often the right answer comes first.

    Args:
        ready: Called once the last step and its map are stored, before its questions are asked.

    Raises:
        VectorError: The files hold no vectors that can be used.
    """
    by_step = at_steps(data)
    recalls = []
    for step, of_step in by_step.items():
        opened, snapshot = _open_step(log, of_step, step)
        log.progress(step=step, total_steps=max(by_step))
        if step == max(by_step):
            ready(replace(opened, steps=len(by_step)))
        opened, recall = _measured(log, opened, snapshot)
        recalls += [] if recall is None else [recall]
    if recalls:
        log.headline(recalls[-1], max(recalls))
    return replace(opened, steps=len(by_step))


def _open_step(log: RunLog, data: config.Vectors, step: int) -> tuple[OpenedVectors, Snapshot]:
    """Store one step and its map; return what was kept."""
    located_vectors = located(data)
    first = located_vectors.first
    chosen = sample(first.rows, data.rows)
    pictures = data.pictures and str(expanded(data.pictures))
    items, note = read_items(
        located_vectors.items,
        chosen,
        first.rows,
        beside=located_vectors.beside,
        arrays=located_vectors.columns,
        pictures=pictures,
        split=SPLIT,
    )
    note = f"{located_vectors.note} {note}".strip()
    both: tuple[tuple[Side, Matrix | None], ...] = (("image", located_vectors.image), ("text", located_vectors.text))
    sides = {side: matrix for side, matrix in both if matrix is not None}
    with (
        tempfile.TemporaryDirectory(dir=log.folder, prefix=".tmp-unit-") as scratch,
        disk.writing(f"The vectors of step {step}", Path(scratch), 4 * len(chosen) * first.width * len(sides)),
    ):
        copy = copy_unit_rows(sides, chosen, Path(scratch), reporting(log))
        kept_items = _only(items, np.flatnonzero(copy.sound))
        opened = OpenedVectors(first.rows, len(kept_items), int((~copy.sound).sum()), first.width, note)
        folder = log.write_snapshot(
            step,
            data.called,
            SPLIT,
            image=copy.sides.get("image"),
            text=copy.sides.get("text"),
            items=kept_items,
            written=partial(_keep_map, kept_items, copy.scatter),
            sampled=opened.kept < opened.rows,
        )
    log.facts(vectors=opened.rows, kept=opened.kept, left_out=opened.left_out, heldout_pairs={SPLIT: opened.kept})
    return opened, read_snapshot(folder, kept_items)


def _measured(log: RunLog, opened: OpenedVectors, snapshot: Snapshot) -> tuple[OpenedVectors, float | None]:
    """Store the main metric where there are images and texts; return it, and how equal pictures are recognized."""
    units, recall = units_of(snapshot), None
    if snapshot.image is not None and snapshot.text is not None:
        measured = measure_step(log, snapshot, units, most=MOST_COSINES)
        recall = measured.main
        opened = replace(opened, recall=measured.words(log.run.id))
    if snapshot.image is not None and units.count("picture") < len(units):
        # How pictures are told apart changes every number where several rows show one.
        opened = replace(opened, note=f"{units.words()}. {opened.note}".strip())
    return opened, recall


@single_blas_thread
def _keep_map(items: Items, scatter: ScatterSum, folder: Path) -> None:
    """Keep the components of all points where they are many: the sums of the pass are there."""
    snapshot = read_snapshot(folder, items)
    arrays = [array for array in (snapshot.image, snapshot.text) if array is not None]
    if len(arrays) * snapshot.n >= WORTH_KEEPING:
        keep_components(folder.parents[3], folder, component_points(arrays, *scatter.axes(3)[:2]))


def sample(rows: int, most: int) -> Int[np.ndarray, " k"]:
    """Return ascending row numbers: all, or `most` of them drawn evenly at random, the same every time.

    Raises:
        VectorError: There are fewer than two rows.
    """
    if rows < 2:
        raise VectorError(f"{'One row' if rows else 'No row'} was found: at least two vectors are needed.")
    if rows <= most:
        return np.arange(rows)
    # One from each of `most` parts of equal size: ascending, without duplicates, and without a permutation of all rows.
    edges = np.linspace(0, rows, most + 1).astype(np.int64)
    return edges[:-1] + (np.random.default_rng(0).random(most) * np.diff(edges)).astype(np.int64)


def _only(items: Items, rows: Int[np.ndarray, " k"]) -> Items:
    if len(rows) == len(items):
        return items
    columns = {name: taken(getattr(items, name), rows) for name in ("path", "caption", "label", "split")}
    metadata = {name: taken(values, rows) for name, values in items.metadata.items()}
    content = taken(items.content, rows) if len(items.content) else ()
    return replace(items, id=items.id[rows], metadata=metadata, content=content, **columns)


def open_here(
    workspace: Workspace, run: int, ready: Callable[[OpenedVectors], None] = lambda _: None, *, keep: bool = False
) -> OpenedVectors:
    """Open the vectors of a run in this process; afterwards it has finished, or is gone if nothing was stored.

    Who interrupts it once it is ready keeps a finished run, without recall.

    Args:
        ready: As for `open_vectors`.
        keep: Of a run of which nothing was stored, the row stays and says why; it can be resumed.

    Raises:
        UserError: As `open_vectors`.
    """
    data = workspace.runs.config_of(run).data
    assert isinstance(data, config.Vectors)
    is_ready = False

    def opened(vectors: OpenedVectors) -> None:
        nonlocal is_ready
        ready(vectors)
        is_ready = True

    try:
        with RunLog.claim(workspace, run) as log:
            try:
                vectors = open_vectors(log, data, opened)
            except KeyboardInterrupt:
                if not is_ready:
                    log.status("stopped", "Stopped before its vectors were copied.")
                raise
            finally:
                if is_ready:
                    log.status("finished")
    except BaseException:
        # It would only keep its name from the next try.
        if not keep and not workspace.results.snapshots(run):
            workspace.purge(run)
        raise
    return vectors


def add_step(workspace: Workspace, ref: int | str, data: config.Vectors, step: int) -> tuple[int, OpenedVectors]:
    """Open vectors as another step of a run of vectors, or in place of that step; return the run's number, too.

    Items, data and the number of rows are those of the run, unless others are named.

    Raises:
        VectorError: The run is of another kind, or its rows are others.
    """
    row = workspace.runs.get(ref)
    run = workspace.runs.config_of(row.id)
    if not isinstance(run.data, config.Vectors):
        raise VectorError(f"Run {row.id} ({row.name}) is not one of vectors. Name another, or leave out --into.")
    if not 0 <= step <= MOST_STEP:
        raise VectorError(f"--step {step}: choose a step from 0 to 2^53.")
    data = replace(
        data,
        called=run.data.called,
        rows=run.data.rows,
        items=data.items or run.data.items,
        pictures=data.pictures or run.data.pictures,
    )
    shape = row.facts.get("vectors"), next((snapshot.d for snapshot in workspace.results.snapshots(row.id)), None)
    if run_of(data).objective != run.objective or _shape_of(data) != shape:
        raise VectorError(
            f"The vectors are of other sides, rows or widths than those of run {row.id} ({row.name}), which has "
            f"{shape[0]} rows of {shape[1]} numbers. Open them as another run."
        )
    with RunLog.claim(workspace, row.id) as log:
        try:
            opened, recall = _measured(log, *_open_step(log, data, step))
            log.progress(step=max(step, row.step), total_steps=max(step, row.step))
            if recall is not None:
                last = recall if step >= row.step or row.last is None else row.last
                log.headline(last, max(recall, recall if row.best is None else row.best))
        finally:
            # What was there before is as good as it was.
            log.status("finished")
    return row.id, opened


def rank_all(workspace: Workspace, ref: int | str, step: int | None = None) -> tuple[Snapshot, MeasuredRecall]:
    """Rank every question of a run of vectors, in place of a sample of them; return its snapshot and the recalls.

    The run says how far it is and what is left meanwhile; who interrupts it keeps what was stored before.

    Args:
        ref: Its number, name or folder.
        step: Of the snapshot; None: the last.

    Raises:
        VectorError: The run has images or texts alone.
    """
    row = workspace.runs.get(ref)
    snapshot = read_snapshot(choose_snapshot(workspace, row, step=step).folder)
    if snapshot.image is None or snapshot.text is None:
        raise VectorError(f"Run {row.id} ({row.name}) has vectors of one side alone: recall needs images and texts.")
    with RunLog.claim(workspace, row.id) as log:
        try:
            measured = measure_step(log, snapshot, units_of(snapshot))
            log.flush()
            recalls = workspace.results.series(row.id, f"val/{MAIN}")[1]
            log.headline(float(recalls[-1]), float(recalls.max()))
        finally:
            log.status("finished")
    return snapshot, measured
