"""Scenes on disk: image files with captions, and a table of their contents."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from PIL import Image

from trainer import config
from trainer.data.atomic_folder import written_once
from trainer.data.pairs import DataError, Source
from trainer.data.scenes.picture import draw
from trainer.data.scenes.plan import SPLITS, Scene, plan_scenes, random, unseen_things
from trainer.data.workers import spread
from trainer.store import derived, write_atomically
from trainer.untrusted import confined

_VERSION: Final = 4
"""Raised when pictures are drawn differently, so that older folders are not taken for them."""

_CHUNK: Final = 64
"""Scenes drawn between two looks at whether to stop."""
_QUALITY: Final = 90
_TABLE: Final = "items.parquet"

_README: Final = """Scenes
======

Images drawn by Contrastive Explorer: two colored shapes on a ground, the larger one named first.
A .txt next to each picture holds its caption. Drop any of the images onto the window to classify it.

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
    """Return the folder where a workspace stores the images of these settings, or would if it is look only."""
    drawn = {name: value for name, value in dataclasses.asdict(scenes).items() if name != "train_share"}
    settings = json.dumps([_VERSION, drawn], sort_keys=True)
    folder = workspace / "data" / f"scenes-{hashlib.blake2b(settings.encode(), digest_size=6).hexdigest()}"
    is_whole = all(is_drawn(folder, split) for split in SPLITS)
    return folder if is_whole else derived.root(workspace) / folder.relative_to(workspace)


def write(
    scenes: config.Scenes,
    folder: Path,
    progress: Callable[[float, str], None],
    *,
    splits: Sequence[str] = SPLITS,
    processes: int | None = None,
) -> Path:
    """Return `folder` with these splits of Scenes, drawn unless they exist; byte-identical every time.

    Held-out splits are drawn first: the untrained model can be measured on them while the training pictures are drawn.

    Args:
        folder: Where; each split appears in it when it is whole.
        splits: Which of `SPLITS`.
        processes: How many draw; None for as many as there are cores.

    Raises:
        DataError: There are too few distinct captions, or the disk cannot be written.
    """
    missing = [split for split in SPLITS[::-1] if split in splits and not is_drawn(folder, split)]
    if not missing:
        return folder
    progress(0.0, "Planning Scenes")
    planned = plan_scenes(scenes)
    _begin(scenes, folder)
    total, done = sum(len(planned[split]) for split in missing), 0
    for split in missing:
        if not is_drawn(folder, split):  # of a copied sample: some of the pictures, without their table
            confined.remove_tree(folder, split)
        report = partial(_report, progress, total, done)
        draw_all = partial(_draw_split, scenes.seed, split, planned[split], report=report, processes=processes)
        written_once(folder / split, draw_all, partial(progress, 0.0, "Waiting for another run that draws Scenes"))
        done += len(planned[split])
    return folder


def _report(progress: Callable[[float, str], None], total: int, before: int, drawn: int) -> None:
    progress((before + drawn) / total, f"Drawing Scenes: {before + drawn:,} of {total:,}")


def is_drawn(folder: Path, split: str) -> bool:
    """Return whether `write` has written this split whole."""
    return (folder / split / _TABLE).is_file()


def sources(folder: Path, split: str) -> list[Source]:
    """Return the pairs of one split in a folder returned by `write`, labeled with the color of the subject."""
    from trainer.untrusted.bounded.parquet import whole

    rows = whole(folder / split / _TABLE, rows=None).to_pylist()
    return [_source(folder, split, row) for row in rows]


def planned_sources(scenes: config.Scenes, folder: Path, split: str) -> list[Source]:
    """Return the pairs of one split before its pictures are drawn; equal to `sources` afterwards."""
    return [_source(folder, split, row) for row in _items(split, plan_scenes(scenes)[split])]


def pictures(scenes: config.Scenes, split: str, numbers: Sequence[int]) -> Iterator[Image.Image]:
    """Yield the pictures of a split with these numbers, drawn here and written nowhere."""
    planned = plan_scenes(scenes)[split]
    return (draw(planned[number], random(scenes.seed, split, number, "drawing")) for number in numbers)


def _source(folder: Path, split: str, row: dict[str, str]) -> Source:
    columns = {"id", "path", "caption", "label", "split"}
    return Source(
        path=folder / split / row["path"],
        relative=f"{split}/{row['path']}",
        caption=row["caption"],
        label=row["label"],
        metadata={name: value for name, value in row.items() if name not in columns},
    )


def _begin(scenes: config.Scenes, folder: Path) -> None:
    """Create the folder and describe it.

    Raises:
        DataError: The disk cannot be written.
    """
    try:
        confined.make_folder(folder.parents[1], folder.parent.name)
        confined.make_folder(folder.parent, folder.name)
        if not (folder / "README.txt").exists():
            write_atomically(folder / "README.txt", partial(_write_about, scenes))
    except OSError as error:
        raise DataError(
            f"{folder} cannot be written: {error.strerror or error}. Free some space or choose another --workspace."
        ) from error


def _draw_split(
    seed: int,
    split: str,
    planned: Sequence[Scene],
    folder: Path,
    *,
    report: Callable[[int], None],
    processes: int | None,
) -> None:
    _write_items(folder, split, planned)
    parts = [
        _Part(folder, seed, split, first, tuple(planned[first : first + _CHUNK]))
        for first in range(0, len(planned), _CHUNK)
    ]
    drawn = 0
    for count in spread(_draw_part, parts, count=processes):
        drawn += count
        report(drawn)


def _draw_part(part: _Part) -> int:
    for index, scene in enumerate(part.scenes, part.first):
        picture = draw(scene, random(part.seed, part.split, index, "drawing"))
        picture.save(part.folder / _file_name(index), quality=_QUALITY)
        confined.write(part.folder, f"{index:05}.txt", f"{scene.caption}\n".encode())
    return len(part.scenes)


def _file_name(index: int) -> str:
    return f"{index:05}.jpg"


def _write_items(folder: Path, split: str, scenes: Sequence[Scene]) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(_items(split, scenes)), folder / _TABLE)


def _items(split: str, scenes: Sequence[Scene]) -> list[dict[str, str]]:
    """Return the rows of a split's table."""
    return [
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


def _write_about(scenes: config.Scenes, file: Path) -> None:
    confined.write(file.parent, file.name, _about(scenes).encode())


def _about(scenes: config.Scenes) -> str:
    unseen = sorted(f"{thing.color} {thing.shape}" for thing in unseen_things(scenes.seed))
    return _README.format(
        train=scenes.train_pairs,
        heldout=scenes.heldout_pairs,
        unseen=", ".join(unseen),
        seed=scenes.seed,
        cooccurrence=scenes.cooccurrence,
    )
