"""Lists of images for training and validation, as data sets provide them: `train.txt`, `test.txt`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from trainer.data.csv_reader import numbered
from trainer.data.pairs import DataError, Source
from trainer.format_detection import names_in
from trainer.untrusted import files as untrusted_files

Problems = list[tuple[str, str]]


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
