"""Prepared pictures as tars of small PNGs: what is sent to another computer in place of the pictures themselves.

A PNG has the pixels of the prepared cache, so a run that reads the tars trains on the same pixels, captions and splits.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from trainer import config
from trainer.data.atomic_folder import written_once
from trainer.data.dataset_index import folder_name
from trainer.data.errors import DataError
from trainer.data.pairs import Pairs
from trainer.data.splits import load

PAIRS_A_TAR: Final = 2_048

Progress = Callable[[float, str], None]


def write_prepared_tars(data: config.Data, *, image_size: int, workspace: Path, progress: Progress) -> config.Shards:
    """Return tars of the prepared pairs of a run with towers of our own, from its cache; written if not there.

    Raises:
        DataError: There is nothing to prepare, more than a train and a held-out split, or no room.
    """
    splits = load(data, image_size=image_size, workspace_folder=workspace, progress=progress, loading="prepared")
    if len(splits.heldout) != 1:
        raise DataError(f"{splits.train.name} has several held-out splits. It is made where the run trains.")
    (heldout,) = splits.heldout.values()
    name = folder_name(splits.train.name)
    marked = f"{splits.train.fingerprint[:16]}-{heldout.fingerprint[:16]}"

    def write(draft: Path) -> None:
        for folder, pairs in (
            ("train", splits.train),
            ("test", heldout),
        ):  # as the reader of tars calls what is held out
            (draft / name / folder).mkdir(parents=True)
            _write_split(pairs, draft / name / folder, progress)

    folder = workspace / "cache" / f"tars-{marked}"
    made = written_once(folder, write, lambda: progress(0.0, "Waiting for another run that writes these tars"))
    return config.Shards(path=str(made / name), encoding="utf-8")


def _write_split(pairs: Pairs, draft: Path, progress: Progress) -> None:
    for number, start in enumerate(range(0, len(pairs), PAIRS_A_TAR)):
        with (draft / f"{number:05d}.tar").open("wb") as file, tarfile.TarFile(mode="w", fileobj=file) as tar:
            for row in range(start, min(start + PAIRS_A_TAR, len(pairs))):
                _add_pair(tar, pairs, row)
        progress(min(1.0, (start + PAIRS_A_TAR) / len(pairs)), f"Writing prepared pictures: {pairs.split}")


def _add_pair(tar: tarfile.TarFile, pairs: Pairs, row: int) -> None:
    stream = io.BytesIO()
    Image.fromarray(np.asarray(pairs.images[row])).save(stream, "PNG", compress_level=1)
    metadata = {name: values[row] for name, values in pairs.metadata.items()}
    members = {"png": stream.getvalue(), "txt": pairs.captions[row].encode(), "cls": pairs.labels[row].encode()}
    members |= {"json": json.dumps(metadata).encode()} if metadata else {}
    for ending, content in members.items():
        if content:
            member = tarfile.TarInfo(f"{row:09d}.{ending}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
