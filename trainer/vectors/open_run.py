"""Open vectors as a run: rows are drawn, brought to unit length and written as a snapshot."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Int

from trainer import config
from trainer.analysis.geometry import modality_gap
from trainer.analysis.progress import Progress
from trainer.analysis.retrieval import median_rank, question_ranks, recall_at
from trainer.analysis.similarity import matched_cosines
from trainer.analysis.unit_rows import is_vector, unit_rows
from trainer.analysis.units import Units
from trainer.charts.matching import units_of
from trainer.store import Items, RunLog, Workspace, disk, read_snapshot, snapshot_name, write_snapshot
from trainer.store.question import Question, retrieval_question
from trainer.untrusted.files import expanded
from trainer.vectors.found import FoundVectors, Matrix, Side, VectorError, find
from trainer.vectors.item_table import check_items, read_items

SPLIT: Final = "vectors"
EVERY_S: Final = 1.0
"""Between two reports of how many questions are ranked."""
_SPARE: Final = 16 << 20


@dataclass(frozen=True)
class OpenedVectors:
    """What was kept: rows of the files, those in the snapshot, and those that are no vectors; a note on their items."""

    rows: int
    kept: int
    left_out: int
    width: int
    note: str = ""


def run_of(data: config.Vectors, name: str = "") -> config.Run:
    """Return the run that opens these vectors.

    Raises:
        VectorError: They cannot be opened, or images and texts do not belong together.
    """
    vectors = located(data)
    first = vectors.image or vectors.text
    assert first is not None
    sample(first.rows, 2)
    check_items(vectors.items, first.rows)
    both = vectors.image is not None and vectors.text is not None
    elsewhere_kind = config.ImagesElsewhere if vectors.image is not None else config.TextsElsewhere
    # Outside of the unions of what can be trained.
    elsewhere: dict[str, Any] = {"data": data, "model": config.NoModel()}
    elsewhere["objective"] = config.PairsElsewhere() if both else elsewhere_kind()
    return config.Run(
        name=name or data.called,
        optimizer=config.Optimizer(epochs=0),
        **elsewhere,
    )


def located(data: config.Vectors) -> FoundVectors:
    """Return where the vectors lie; one path without a side may hold both.

    Raises:
        VectorError: As `find`, or the two sides have different numbers of rows or widths.
    """
    sources: tuple[tuple[Side, str, str], ...] = (
        ("image", data.image_vectors, data.image_column),
        ("text", data.text_vectors, data.text_column),
    )
    sides = {side: find(expanded(path), side, column) for side, path, column in sources if path.strip()}
    image = sides["image"].image if "image" in sides else None
    text = sides["text"].text if "text" in sides else None
    items = next((side_vectors.items for side_vectors in sides.values() if side_vectors.items), ())
    if data.items.strip():
        items = (expanded(data.items),)
    if image is not None and text is not None:
        _check_pairs(image, text)
    columns = {
        name: values for side_vectors in reversed(sides.values()) for name, values in side_vectors.columns.items()
    }
    notes = dict.fromkeys(side_vectors.note for side_vectors in sides.values() if side_vectors.note)
    return FoundVectors(image, text, items, columns, " ".join(notes))


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


def open_vectors(log: RunLog, data: config.Vectors) -> OpenedVectors:
    """Write the snapshot of the run, register it, and measure how often the right answer comes first.

    Raises:
        VectorError: The files hold no vectors that can be used.
    """
    located_vectors = located(data)
    first = located_vectors.image or located_vectors.text
    assert first is not None
    chosen = sample(first.rows, data.rows)
    pictures = data.pictures and str(expanded(data.pictures))
    items, note = read_items(
        located_vectors.items, chosen, first.rows, arrays=located_vectors.columns, pictures=pictures, split=SPLIT
    )
    note = f"{located_vectors.note} {note}".strip()
    arrays = {
        name: matrix.take(chosen)
        for name, matrix in (("image", located_vectors.image), ("text", located_vectors.text))
        if matrix is not None
    }
    sound = np.logical_and.reduce([is_vector(rows) for rows in arrays.values()])
    if sound.sum() < 2:
        raise VectorError("Fewer than two rows are vectors: the others are zero, or hold a value that is not a number.")
    kept_items = _only(items, np.flatnonzero(sound))
    unit = {name: unit_rows(rows[sound]) for name, rows in arrays.items()}
    opened = OpenedVectors(first.rows, len(kept_items), int((~sound).sum()), first.width, note)
    folder = log.folder / "snapshots" / snapshot_name(dataset=data.called, split=SPLIT, step=0)
    with disk.writing("The snapshot of the vectors", folder, _SPARE + sum(rows.nbytes for rows in unit.values())):
        write_snapshot(
            folder,
            image=unit.get("image"),
            text=unit.get("text"),
            items=kept_items,
            step=0,
            dataset=data.called,
            split=SPLIT,
            model=log.run.name,
            sampled=opened.kept < opened.rows,
        )
    log.snapshot(0, data.called, SPLIT, folder, opened.kept, opened.width)
    log.facts(vectors=opened.rows, kept=opened.kept, left_out=opened.left_out, heldout_pairs={SPLIT: opened.kept})
    units = units_of(read_snapshot(folder))
    if len(unit) == 2:
        _measure(log, data.called, folder, units)
    if "image" in unit and units.count("picture") < len(units):
        # How pictures are told apart changes every number where several rows show one.
        opened = replace(opened, note=f"{units.words()}. {note}".strip())
    return opened


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
    columns = {name: [getattr(items, name)[row] for row in rows] for name in ("path", "caption", "label", "split")}
    metadata = {name: [values[row] for row in rows] for name, values in items.metadata.items()}
    content = [items.content[row] for row in rows] if len(items.content) else ()
    return replace(items, id=items.id[rows], metadata=metadata, content=content, **columns)


def _measure(log: RunLog, dataset: str, folder: Path, units: Units) -> None:
    """Store recalls in both directions, the matched cosine and the gap, with their question."""
    snapshot = read_snapshot(folder)
    assert snapshot.image is not None
    assert snapshot.text is not None
    image, text, matching = snapshot.image, snapshot.text, units.matching
    numbers = {
        "matched_cosine": float(matched_cosines(image, text).mean()),
        "modality_gap": modality_gap(image, text, matching)[1],
    }
    for name, query, stored, answers in (
        ("image_to_text", image, text, matching.texts),
        ("text_to_image", text, image, matching.images),
    ):
        ranks = question_ranks(query, stored, answers, progress=_reporting(log, name.replace("_", " ")))
        numbers |= {f"{name}_R@{k}": recall_at(ranks, k) for k in (1, 5, 10)}
        numbers[f"{name}_median_rank"] = median_rank(ranks)
    by_task = {
        "retrieval": retrieval_question(snapshot.n, texts=len(matching.texts), images=len(matching.images)),
        "similarity": Question("similarity", snapshot.n, protocol="matched pairs"),
    }
    questions = {direction: by_task["retrieval"].asked(direction) for direction in ("image_to_text", "text_to_image")}
    log.facts(heldout_questions={SPLIT: questions})
    log.evaluation(0, dataset, SPLIT, numbers, by_task)
    log.scalars(0, {f"val/{name}": value for name, value in numbers.items()})
    log.headline(numbers["image_to_text_R@1"], numbers["image_to_text_R@1"])


def _reporting(log: RunLog, direction: str) -> Progress:
    """Return what reports the share of questions that are ranked: among 200,000 items that takes minutes."""
    reported_at = time.monotonic()

    def report(share: float, _note: str) -> None:
        nonlocal reported_at
        if time.monotonic() - reported_at >= EVERY_S:
            reported_at = time.monotonic()
            log.report(f"ranking {direction}: {100 * share:.0f} %")

    return report


def open_here(workspace: Workspace, run: int) -> OpenedVectors:
    """Open the vectors of a new run in this process; afterwards it has finished, or failed and says why.

    Raises:
        UserError: As `open_vectors`.
    """
    data = workspace.runs.config_of(run).data
    assert isinstance(data, config.Vectors)
    with RunLog.claim(workspace, run) as log:
        opened = open_vectors(log, data)
        log.status("finished")
    return opened
