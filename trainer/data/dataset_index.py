"""List the pairs of a data set before any image is decoded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from trainer import config
from trainer.analysis.progress import Progress
from trainer.config.extension import PluginDataset, PluginPair
from trainer.data import scenes
from trainer.data.class_folder import class_sources
from trainer.data.folder import folder_sources, repeats_note
from trainer.data.hub import hub_sources
from trainer.data.kept_pairs import once
from trainer.data.named import named_sources
from trainer.data.pairs import DataError, ImportLog, Source
from trainer.data.picture_arrays import ARRAYS, array_sources
from trainer.data.split_lists import shared_by_column, shared_by_lists, shared_by_names
from trainer.data.table import table_sources
from trainer.data.tar_files import shard_sources
from trainer.format_detection.proposal import table_parts, tables_alike
from trainer.format_detection.readme import unread_split
from trainer.format_detection.splits import SPLITS, is_split, part_of
from trainer.format_detection.tables import TABLES, columns_of
from trainer.prompt_suites import PromptSuite, learned_suite, prompt_suites
from trainer.store.picture_paths import data_here
from trainer.untrusted.texts import ending_of

_MOST_TABLES: Final = 20


@dataclass(frozen=True)
class DatasetIndex:
    """The pairs of each split on the disk."""

    name: str  # Of the data set; a folder may bear it.
    splits: Mapping[str, Sequence[Source]]  # "train", and what is held out if the data set says so itself.
    problems: list[tuple[str, str]]  # (path or row, reason) of what is no pair.
    suite: PromptSuite | None = None  # The zero-shot question about its classes, in the sentences of its captions.
    log: ImportLog = field(default_factory=ImportLog)  # What is odd, and what is log about all of them.


def listing(
    data: config.Data, workspace_folder: Path, progress: Progress, *, drawn: Sequence[str] = scenes.SPLITS
) -> DatasetIndex:
    """Return the pairs of a data set of any type.

    Splits of Scenes other than those `drawn` are listed before their pictures are drawn.

    Raises:
        DataError: There is nothing there that could be used.
    """
    data = data_here(workspace_folder, data)
    name = folder_name(config.data_name(data))
    splits: Mapping[str, Sequence[Source]]
    if isinstance(data, config.Scenes):
        folder = scenes.write(data, scenes.folder_of(data, workspace_folder), progress, splits=drawn)
        splits = {split: scenes.planned_sources(data, folder, split) for split in scenes.SPLITS if split not in drawn}
        splits = {split: splits.get(split) or scenes.sources(folder, split) for split in scenes.SPLITS}
        return DatasetIndex("scenes", splits, [], prompt_suites().get("scenes"))
    splits, problems = _found(data, workspace_folder, progress, log := ImportLog())
    if len(splits) == 1 and isinstance(data, config.Folder | config.Table | config.ClassFolder):
        splits, more = _shared(data, [*splits["train"]], log)
        problems = problems + more
    if len(splits) == 1 and isinstance(data, config.HubDataset):
        splits, more = shared_by_column([*splits["train"]], log)
        problems = problems + more
    log.notes += _unread(data, splits, log)
    is_classed = any(once(pairs, "a class", bool, partial(_has_class, pairs)) for pairs in splits.values())
    pairs = [source for sources in splits.values() for source in sources] if is_classed else []
    captions, labels = [pair.caption for pair in pairs], [pair.label for pair in pairs]
    suite = learned_suite(name, captions, labels, stated=getattr(data, "template", ""))
    return DatasetIndex(name, splits, problems, suite, log)


def _has_class(pairs: Sequence[Source]) -> bool:
    return any(pair.label for pair in pairs)


def _unread(data: config.Data, splits: Mapping[str, Sequence[Source]], log: ImportLog) -> list[str]:
    """Return sentences about what other programs would read: a split in a README, repeats in names of folders."""
    if not isinstance(data, config.Folder | config.Table | config.ClassFolder | config.Shards):
        return []
    path = Path(data.path)
    # The tables of the hub lie in `data`, or a folder deeper.
    folders = [path, *list(path.parents)[:3]] if isinstance(data, config.Table) else [path]
    notes = []
    with suppress(OSError):  # as without one
        notes.append(next(filter(None, (unread_split(at, is_split=bool(log.split)) for at in folders)), ""))
    if isinstance(data, config.ClassFolder) and path.is_dir() and not log.split:
        files = [file for file in sorted(path.iterdir()) if ending_of(file) in TABLES]
        for file in files[:_MOST_TABLES]:
            if column := next((name for name in columns_of(file) if name.lower() in SPLITS), ""):
                notes.append(f"The column {column!r} of {file.name} may state a split, which is not read.")
        tables = [file.name for file in files if part_of(file.name)]
        if is_split({part_of(name) for name in tables}):
            train = next(name for name in tables if part_of(name) == "train")
            notes.append(f"{', '.join(tables[:4])} may state a split, which is not read. --data {train} reads it.")
    if isinstance(data, config.Folder) and not log.split:
        notes.append(repeats_note([source.relative for source in splits["train"]]))
    return [note for note in notes if note]


def _shared(
    data: config.Folder | config.Table | config.ClassFolder, sources: list[Source], log: ImportLog
) -> tuple[dict[str, list[Source]], list[tuple[str, str]]]:
    """Return the pairs of each split by what states it: chosen lists, a column, names; only "train" if nothing does."""
    lists = data.train_list.strip(), data.heldout_list.strip()
    if any(lists):
        names = dict.fromkeys(Path(name).name for name in lists if name)
        log.split = f"Lists name the split: {' and '.join(names)}."
        return shared_by_lists(sources, *lists, log)
    if data.split_from == "share":
        return {"train": sources}, []
    splits: dict[str, list[Source]] = {"train": sources}
    problems: list[tuple[str, str]] = []
    if isinstance(data, config.Table):
        splits, problems = shared_by_column(sources, log)
    # Of a folder per class, names were looked at before its classes.
    if len(splits) == 1 and not isinstance(data, config.ClassFolder):
        return shared_by_names(sources, log)
    return splits, problems


def _found(
    data: config.Data, workspace_folder: Path, progress: Progress, log: ImportLog
) -> tuple[Mapping[str, Sequence[Source]], list[tuple[str, str]]]:
    if isinstance(data, config.ClassFolder):
        return class_sources(data, workspace_folder, progress, log)
    if isinstance(data, config.Shards):
        return shard_sources(data, workspace_folder, progress, log)
    if isinstance(data, config.Named):
        return named_sources(data, workspace_folder, progress), []
    if isinstance(data, config.HubDataset):
        return hub_sources(data, workspace_folder, progress)
    if isinstance(data, PluginDataset):
        return plugin_sources(data)
    if isinstance(data, config.Scenes):
        raise DataError("Scenes are drawn, not listed.")
    if isinstance(data, config.Table) and data.path.lower().endswith(ARRAYS):
        sources, problems = array_sources(data.path, workspace_folder, progress)
        return {"train": sources}, problems
    read = partial(_at_path, data, progress=progress, log=log)
    sources, problems = read(data.path)
    if not data.heldout_path.strip():
        if isinstance(data, config.Table) and (alike := tables_alike(Path(data.path))):
            log.notes.append(
                f"Not read: {', '.join(alike[:5])}, next to {Path(data.path).name} with the same columns. "
                "data.heldout_path holds one out."
            )
        return {"train": sources}, problems
    heldout, more = read(data.heldout_path)
    log.split = f"data.heldout_path names what is held out: {Path(data.heldout_path).name}."
    if isinstance(data, config.Table):
        more += _of_other_parts(data, read, log)
    return {"train": sources, "heldout": heldout}, problems + more


def _of_other_parts(
    data: config.Table, read: Callable[[str], tuple[list[Source], list[tuple[str, str]]]], log: ImportLog
) -> list[tuple[str, str]]:
    """Return the rows of a third table that names state to be a part of the same data, which no run uses."""
    used = {Path(data.path), Path(data.heldout_path)}
    parts = table_parts(Path(data.path))
    problems: list[tuple[str, str]] = []
    if used <= set(parts.values()):
        above = os.path.commonpath([file.parent for file in used])
        train, held = (file.relative_to(above).as_posix() for file in (Path(data.path), Path(data.heldout_path)))
        log.split = f"The names {train!r} and {held!r} state the split: {held!r} is held out."
        for part, file in parts.items():
            if file not in used:
                try:
                    rows, more = read(str(file))
                except DataError as error:
                    problems.append((file.name, str(error)))
                    continue
                why = f"It is in {file.relative_to(above).as_posix()!r}, the part for {part}; {held!r} is held out."
                problems += more
                log.other_parts += [(row.relative, why) for row in rows]
    return problems


def _at_path(
    data: config.Folder | config.Table, path: str, *, progress: Progress, log: ImportLog
) -> tuple[list[Source], list[tuple[str, str]]]:
    if isinstance(data, config.Folder):
        return folder_sources(path, progress, captions=data.captions, lines=data.lines, encoding=data.encoding, log=log)
    return table_sources(replace(data, path=path), progress, log)


def folder_name(name: str) -> str:
    """Return the name with characters that are valid in a folder name."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "data"


def plugin_sources(data: PluginDataset) -> tuple[dict[str, list[Source]], list[tuple[str, str]]]:
    """Return the pairs of each split, and (pair, reason) of what is none.

    Raises:
        DataError: The plug-in fails while it lists them.
    """
    splits: dict[str, list[Source]] = {"train": []}
    problems: list[tuple[str, str]] = []
    try:
        for number, pair in enumerate(data.pairs()):
            if not isinstance(pair, PluginPair) or not str(pair.caption).strip() or pair.split not in _SPLITS:
                problems.append((f"pair {number}", "it is not a PluginPair with a caption and a split"))
                continue
            path = Path(pair.image)
            source = Source(path, path.as_posix().lstrip("/"), str(pair.caption), str(pair.label))
            splits.setdefault(pair.split, []).append(source)
    except Exception as error:  # whatever the code of another package raises
        raise DataError(f"{data.label} could not list its pairs: {error}. Correct the plug-in.") from error
    return splits, problems


_SPLITS = ("train", "heldout")
