"""Scenes on the disk: ordinary image files with their captions beside them, and a table of what is in them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainer import config
from trainer.data.atomic_folder import written_once
from trainer.data.pairs import Source
from trainer.data.scenes.picture import draw
from trainer.data.scenes.plan import SPLITS, Scene, plan_scenes, random, unseen_things
from trainer.data.workers import spread
from trainer.store import earlier_names

_VERSION: Final = 4
"""Raised when pictures are drawn differently, so that older folders are not taken for them."""

_CHUNK: Final = 192
_QUALITY: Final = 90

_README: Final = """Scenes
======

Pictures that Contrastive Explorer drew itself: two colored shapes on a ground, the larger one named first.
A .txt next to each picture holds its caption. Drop any of the pictures onto the window to classify it.

train/         {train:,} pairs that runs learn from
renderings/    {heldout:,} new drawings of captions that occur in train/
combinations/  {heldout:,} pairs about colored shapes that never occur in train/:
               {unseen}
items.parquet  in each of them: every word of every caption as a column

Drawing seed {seed}, co-occurrence {cooccurrence:g}. The same settings draw the same files again, so this folder may be
deleted at any time. Pictures and captions are free of rights (CC0).
"""


@dataclass(frozen=True)
class _Part:
    """Consecutive scenes of a split that one process draws."""

    folder: Path
    seed: int
    split: str
    first: int
    scenes: tuple[Scene, ...]


def folder_of(scenes: config.Scenes, workspace: Path) -> Path:
    """Where a workspace keeps the pictures of these settings."""
    settings = json.dumps([_VERSION, dataclasses.asdict(scenes)], sort_keys=True)
    return workspace / "data" / f"scenes-{hashlib.blake2b(settings.encode(), digest_size=6).hexdigest()}"


def write(
    scenes: config.Scenes,
    folder: Path,
    progress: Callable[[float, str], None],
    *,
    processes: int | None = None,
) -> Path:
    """`folder` with all splits of Scenes in it, drawn unless it is already there. Byte for byte the same every time.

    Args:
        scenes: What to draw.
        folder: Where; appears when it is whole.
        progress: Told the share that is done.
        processes: How many draw; None for as many as there are cores.

    Raises:
        DataError: There are too few distinct captions, or the disk cannot be written.
    """
    return written_once(
        folder,
        lambda unfinished: _draw_all(scenes, unfinished, progress, processes),
        lambda: progress(0.0, "Waiting for another run that draws Scenes"),
    )


def sources(folder: Path, split: str) -> list[Source]:
    """The pairs of one split in a folder that `write` returned; labeled with the color of its subject."""
    from trainer.untrusted.bounded.parquet import whole

    rows = whole(folder / split / "items.parquet", rows=None).to_pylist()
    known = {"id", "path", "caption", "label", "split"}
    return [
        Source(
            path=folder / split / row["path"],
            relative=f"{split}/{row['path']}",
            caption=row["caption"],
            label=row["label"],
            metadata=earlier_names.columns({name: value for name, value in row.items() if name not in known}),
        )
        for row in rows
    ]


def _draw_all(
    scenes: config.Scenes, folder: Path, progress: Callable[[float, str], None], processes: int | None
) -> None:
    progress(0.0, "Planning Scenes")
    planned = plan_scenes(scenes)
    parts: list[_Part] = []
    for split in SPLITS:
        (folder / split).mkdir()
        _write_items(folder / split, split, planned[split])
        for first in range(0, len(planned[split]), _CHUNK):
            few = tuple(planned[split][first : first + _CHUNK])
            parts.append(_Part(folder / split, scenes.seed, split, first, few))
    (folder / "README.txt").write_text(_about(scenes), encoding="utf-8")
    total, done = sum(map(len, planned.values())), 0
    for count in spread(_draw_part, parts, count=processes):
        done += count
        progress(done / total, f"Drawing Scenes: {done:,} of {total:,}")


def _draw_part(part: _Part) -> int:
    for index, scene in enumerate(part.scenes, part.first):
        picture = draw(scene, random(part.seed, part.split, index, "drawing"))
        picture.save(part.folder / _file_name(index), quality=_QUALITY)
        (part.folder / f"{index:05}.txt").write_text(scene.caption + "\n", encoding="utf-8")
    return len(part.scenes)


def _file_name(index: int) -> str:
    return f"{index:05}.jpg"


def _write_items(folder: Path, split: str, scenes: Sequence[Scene]) -> None:
    import pyarrow
    import pyarrow.parquet

    rows = [
        {
            "id": f"{split}/{index:05}",
            "path": _file_name(index),
            "caption": scene.caption,
            "label": scene.subject.color,
            "split": split,
            **scene.metadata,
        }
        for index, scene in enumerate(scenes)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "items.parquet")


def _about(scenes: config.Scenes) -> str:
    unseen = sorted(f"{thing.color} {thing.shape}" for thing in unseen_things(scenes.seed))
    return _README.format(
        train=scenes.train_pairs,
        heldout=scenes.heldout_pairs,
        unseen=", ".join(unseen),
        seed=scenes.seed,
        cooccurrence=scenes.cooccurrence,
    )
