"""Splits that data sets state: lists `train.txt` and `test.txt`, a column `split`, names of folders and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from trainer.data.csv_lines import numbered
from trainer.data.pairs import DataError, ImportLog, Source
from trainer.format_detection.split_files import families, family_of, is_of_all, listed_parts, names_in, numbered_list
from trainer.format_detection.splits import (
    SPLIT,
    SPLITS,
    Part,
    StatedSplit,
    heldout_of,
    is_split,
    part_of,
    parts_of_values,
    stated_split,
    unused_keywords,
)
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.texts import open_text

Problems = list[tuple[str, str]]

FLAGS: Final[Mapping[str, bool]] = {
    "is_train": True,
    "is_training": True,
    "is_training_img": True,
    "is_valid": False,
    "is_val": False,
    "is_validation": False,
    "is_test": False,
}
"""Columns of yes and no that may state the split -> whether "yes" is trained on."""
_FLAG_VALUES: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def shared_by_lists(
    sources: Sequence[Source], train_list: str, heldout_list: str, log: ImportLog
) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of "train" and "heldout" by lists of images; with one list, the rest is the other split.

    A line is a path of an image, with or without its ending, or its name where only one image is called so; columns
    after it are passed over. What both lists name is held out.

    Args:
        sources: All pairs, in order.
        train_list: Path of a text file, or empty.
        heldout_list: The same; one of both is given.
        log: Receives what only a third list beside the held-out one names, such as the list of another part.

    Raises:
        DataError: A list cannot be read.
    """
    images = _index(sources)
    problems: Problems = []
    family = family_of(Path(heldout_list)) if heldout_list.strip() else {}
    held = heldout_of([part for part, file in family.items() if file == Path(heldout_list)] or ["test"])
    chosen: tuple[tuple[str, str, Part], ...] = (("train", train_list, "train"), ("heldout", heldout_list, held))
    named = {split: _named(Path(path), part, images, problems) for split, path, part in chosen if path.strip()}
    heldout = named.get("heldout", {source.relative for source in sources} - named.get("train", set()))
    train = named.get("train", {source.relative for source in sources}) - heldout
    splits = {
        "train": [source for source in sources if source.relative in train],
        "heldout": [source for source in sources if source.relative in heldout],
    }
    others = {
        image: f"{file.name} names it; what {Path(heldout_list).name} names is held out."
        if file != Path(heldout_list)
        else f"{file.name} has it in its part {part!r}; its part {held!r} is held out."
        for part, file in family.items()
        if part not in ("train", held)
        for image in _named(file, part, images, [])
    }
    folders = {Path(path).parent for path in (train_list, heldout_list) if path.strip()}
    others_there = [lists["train"].name for folder in folders for lists in families(folder) if lists != family]
    if family and others_there:
        log.notes.append(f"Not read: {len(others_there)} more pairs of lists of a split, such as {others_there[0]}.")
    for source in sources:
        if source.relative in train or source.relative in heldout:
            continue
        if why := others.get(source.relative):
            log.other_parts.append((source.relative, why))
        else:
            problems.append((source.relative, "The lists of the split do not name it."))
    return splits, problems


def shared_by_column(sources: Sequence[Source], log: ImportLog) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of "train" and "heldout" by a column such as `split`; only "train" if none names both."""
    names = {name.strip().lower(): name for name in {name for source in sources for name in source.metadata}}
    for column in filter(names.__contains__, SPLITS):
        said = [source.metadata.get(names[column], "").strip().lower() for source in sources]
        stated = parts_of_values(said)
        parts = [stated.get(value) for value in said]
        if is_split(set(parts)) and 2 * sum(part is None for part in parts) <= len(parts):
            break
        if any(said) and column == SPLIT:
            named = ", ".join(repr(value) for value in dict.fromkeys(said) if value)
            log.notes.append(f"The column {column!r} names no part to train on and one to validate on: {named[:200]}.")
    else:
        return _shared_by_flag(sources, names, log)
    held = heldout_of(part for part in parts if part)
    values = {part: value for part, value in zip(parts, said) if part}
    log.split = f"The column {column!r} states the split: {values[held]!r} is held out."
    splits = _by_part(sources, parts, held)
    problems: Problems = []
    for source, part, value in zip(sources, parts, said, strict=True):
        if part not in ("train", held):
            lines = log.other_parts if part or part_of(value) else problems
            lines.append((source.relative, f"Its split is {value!r}; {values[held]!r} is held out."))
    return splits, problems


def _shared_by_flag(
    sources: Sequence[Source], names: Mapping[str, str], log: ImportLog
) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of "train" and "heldout" by a column of yes and no; only "train" if none states a split.

    The column of fastai is `is_valid`. It may also tell usable rows from others, which are most: what would hold out
    more than half is no split.

    Args:
        sources: All pairs of a table, in order.
        names: A column's name in small letters -> as it is spelled.
        log: Receives a sentence about the split, or about a column that is none.
    """
    for column in filter(names.__contains__, FLAGS):
        cells = [source.metadata.get(names[column], "").strip().lower() for source in sources]
        heldout = [value != FLAGS[column] for value in map(_FLAG_VALUES.get, cells)]
        if odd := sorted(set(cells) - _FLAG_VALUES.keys()):
            log.notes.append(f"The column {names[column]!r} states no split: {odd[0][:60]!r} is neither yes nor no.")
        if odd or not 0 < sum(heldout) < len(heldout):
            continue
        if 2 * sum(heldout) > len(heldout):
            log.notes.append(
                f"The column {names[column]!r} would hold out more than half of the rows, so it states no split."
            )
            continue
        cell = cells[heldout.index(True)]
        log.split = f"The column {names[column]!r} states the split: {cell!r} is held out."
        return _by_part(sources, ["heldout" if is_heldout else "train" for is_heldout in heldout], "heldout"), []
    return {"train": list(sources)}, []


def shared_by_names(sources: Sequence[Source], log: ImportLog) -> tuple[dict[str, list[Source]], Problems]:
    """Return the pairs of "train" and "heldout" by the names of pictures and their folders; only "train" if by none."""
    names = [source.relative for source in sources]
    stated = stated_split(names)
    if stated is None:
        if remark := unused_keywords(names):
            log.notes.append(remark)
        return {"train": list(sources)}, []
    log.split = stated_sentence(stated)
    parts = [stated.parts.get(name) for name in names]
    return _by_part(sources, parts, stated.heldout), not_in_use(stated, names, log)


def stated_sentence(stated: StatedSplit, heldout: Part | None = None) -> str:
    """Return a sentence that names what states a split, and what is held out."""
    held = heldout or stated.heldout
    if "train" not in stated.sources:
        return f"The folder {stated.sources[held]!r} states what is held out; what lies in no part is trained on."
    named = f"{stated.sources['train']!r} and {stated.sources[held]!r}"
    if stated.level == "lists":
        return f"The lists of classes {named} state the split: {stated.sources[held]!r} is held out."
    if stated.level == "folders":
        return f"The folders {named} state the split: {stated.sources[held]!r} is held out."
    return f"The file names state the split by {named}: {stated.sources[held]!r} is held out."


def not_in_use(stated: StatedSplit, names: Iterable[str], log: ImportLog, heldout: Part | None = None) -> Problems:
    """Return what lies in no part of a split, and why; `log` receives what lies in a part that is not used."""
    held = heldout or stated.heldout
    problems: Problems = []
    for name in names:
        part = stated.parts.get(name)
        if part is None:
            problems.append((name, f"It lies in no part of the split that the {stated.level} state."))
        elif part not in ("train", held):
            reason = f"Its part of the split is {stated.sources[part]!r}; {stated.sources[held]!r} is held out."
            log.other_parts.append((name, reason))
    return problems


def _by_part(sources: Sequence[Source], parts: Sequence[str | None], heldout: str) -> dict[str, list[Source]]:
    return {
        split: [source for source, part in zip(sources, parts, strict=True) if part == chosen]
        for split, chosen in (("train", "train"), ("heldout", heldout))
    }


def _index(sources: Iterable[Source]) -> dict[str, str]:
    """Return list entry -> image; empty if ambiguous."""
    images: dict[str, str] = {}
    for relative in dict.fromkeys(source.relative for source in sources):
        path = Path(relative)
        for key in {relative, path.with_suffix("").as_posix() if path.name else relative, path.name, path.stem}:
            images[key] = relative if images.get(key, relative) == relative else ""
    return images


def _trained_numbers(path: Path) -> set[str]:
    """Return the numbers of the images to train on of a list with lines of a number and 1 or 0."""
    with open_text(path) as file:
        rows = (raw.decode("utf-8", "replace").split() for _, raw in numbered(file) if not isinstance(raw, str))
        return {row[0] for row in rows if row[1:] == ["1"]}


def _named(path: Path, part: Part, images: dict[str, str], problems: Problems) -> set[str]:
    listed: set[str] = set()
    try:
        for number, line in _lines(path, part):
            image = next((images[name] for name in names_in(line) if images.get(name)), "")
            if image:
                listed.add(image)
            else:
                problems.append(
                    (f"{path.name}, line {number}", f"It names no image: {untrusted_files.spelled(line[:100])}")
                )
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Choose another list, or none.") from error
    return listed


def _lines(path: Path, part: Part) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line of a list that names an image."""
    if is_of_all(path):
        yield from enumerate(listed_parts(path).get(part, ()), 1)
        return
    chosen = _trained_numbers(path) if (names := numbered_list(path)) else None
    with open_text(names or path) as file:
        for number, raw in numbered(file):
            line = raw if isinstance(raw, str) else raw.decode("utf-8-sig", "replace").strip()
            image_number, _, image = line.partition(" ")
            if line and not line.startswith("#") and (chosen is None or image_number in chosen):
                yield number, line if chosen is None else image
