"""Lists of images for training and validation, as data sets provide them: `train.txt`, `test.txt`, a column `split`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from trainer.data.csv_reader import numbered
from trainer.data.pairs import DataError, ImportLog, Source
from trainer.format_detection import names_in
from trainer.untrusted import files as untrusted_files

Problems = list[tuple[str, str]]

SPLIT: Final = "split"
"""A column of this name says where a pair belongs."""
_TRAIN: Final = ("train", "training", "restval")
_HELDOUT: Final = ("test", "testing", "val", "valid", "validation", "dev")
"""What its values are called, the likeliest to be held out first."""


def shared_by_lists(
    sources: Sequence[Source], train_list: str, heldout_list: str
) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of "train" and "heldout" by lists of images; with one list, the rest is the other split.

    A line is a path of an image, with or without its ending, or its name where only one image is called so; columns
    after it are passed over. What both lists name is held out.

    Args:
        sources: All pairs, in order.
        train_list: Path of a text file, or empty.
        heldout_list: The same; one of both is given.

    Raises:
        DataError: A list cannot be read.
    """
    known = _index(sources)
    problems: Problems = []
    named = {
        split: _named(Path(path), known, problems)
        for split, path in (("train", train_list), ("heldout", heldout_list))
        if path.strip()
    }
    heldout = named.get("heldout", {one.relative for one in sources} - named.get("train", set()))
    train = named.get("train", {one.relative for one in sources}) - heldout
    splits = {
        "train": [one for one in sources if one.relative in train],
        "heldout": [one for one in sources if one.relative in heldout],
    }
    problems += [
        (one.relative, "The lists of the split do not name it.")
        for one in sources
        if one.relative not in train and one.relative not in heldout
    ]
    return splits, problems


def shared_by_column(sources: Sequence[Source], log: ImportLog) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of "train" and "heldout" by the column `split`; only "train" if no such column names both.

    Args:
        sources: All pairs of a table, in order.
        log: Receives a note about what is held out.
    """
    said = [_split_of(one) for one in sources]
    held = next((name for name in _HELDOUT if name in said), "")
    if not held or not set(said) <= {*_TRAIN, *_HELDOUT} or not set(_TRAIN) & set(said):
        return {"train": list(sources)}, []
    splits = {
        "train": [one for one, name in zip(sources, said, strict=True) if name in _TRAIN],
        "heldout": [one for one, name in zip(sources, said, strict=True) if name == held],
    }
    log.notes.append(f"The column {SPLIT!r} says what is held out: its {len(splits['heldout']):,} pairs of {held!r}.")
    problems = [
        (one.relative, f"Its split is {name!r}; {held!r} is held out.")
        for one, name in zip(sources, said, strict=True)
        if name not in (*_TRAIN, held)
    ]
    return splits, problems


def _split_of(source: Source) -> str:
    return next((value.strip().lower() for name, value in source.metadata.items() if name.lower() == SPLIT), "")


def _index(sources: Iterable[Source]) -> dict[str, str]:
    """Return list entry -> image; empty if ambiguous."""
    known: dict[str, str] = {}
    for relative in dict.fromkeys(one.relative for one in sources):
        place = Path(relative)
        for key in {relative, place.with_suffix("").as_posix() if place.name else relative, place.name, place.stem}:
            known[key] = relative if known.get(key, relative) == relative else ""
    return known


def _named(path: Path, known: dict[str, str], problems: Problems) -> set[str]:
    found: set[str] = set()
    try:
        with untrusted_files.open_ordinary(path) as file:
            for number, raw in numbered(file):
                line = raw if isinstance(raw, str) else raw.decode("utf-8-sig", "replace").strip()
                if not line or line.startswith("#"):
                    continue
                image = next((known[name] for name in names_in(line) if known.get(name)), "")
                if image:
                    found.add(image)
                else:
                    problems.append(
                        (f"{path.name}, line {number}", f"It names no image: {untrusted_files.spelled(line[:100])}")
                    )
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Choose another list, or none.") from error
    return found
