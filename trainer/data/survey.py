"""Survey a folder, table or tar and its problems, for `trainer data show` and the import dialog."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from trainer import config
from trainer.analysis.progress import Progress
from trainer.config.presets import preset
from trainer.data import DataError, Pairs, load
from trainer.data.captions import caption_notes
from trainer.data.dataset_index import listing
from trainer.data.fitting_run import PRESET, captions_repeat
from trainer.data.folder import TOLD_EVERY
from trainer.data.pairs import Source
from trainer.data.prepared import bytes_needed
from trainer.data.splits import parts_of, split_sentence
from trainer.format_detection import columns_of, propose
from trainer.format_detection.proposal import CAPTION_SUFFIXES
from trainer.images import NOT_READ, SUFFIXES, Location, Member, location
from trainer.messages import Example, ReadData, ReadDataAnswer
from trainer.store import derived
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files

EXAMPLES: Final = 10
PICTURES: Final = 1_000
"""Image files of a folder that are named, for whoever wants to look at them without captions."""

_TEXTS: Final = (*CAPTION_SUFFIXES, ".md", ".json", ".csv", ".cls")
"""What lies beside images and is no image that could not be read."""

Lines = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The contents of a data set as a run would read it."""

    data: config.Data
    name: str
    opened: bool  # Whether every picture was opened. If not, `used` are the pairs that are listed, unread.
    # Split -> how many; before pictures are opened only those splits that the data set itself has.
    pairs: dict[str, int]
    examples: list[Example]  # Ten pairs to train on, spread evenly over them.
    used: int  # Pairs that a run gets, held out or not.
    problems: Lines  # (item, reason) of every item that is not used and should be.
    # The same of a stated part that is neither trained on nor held out; `used`, `problems` and these are all that
    # was found.
    other_parts: Lines = field(default_factory=list)
    remarks: Lines = field(default_factory=list)  # (item, what was put right) of odd ones that are used.
    # Sentences about all of them: their encoding, what repeats, what is too long.
    notes: list[str] = field(default_factory=list)
    split: str = ""  # How what is held out was chosen, as a sentence.
    # Ending, or what else they are, -> number of files in a folder that are neither image nor caption.
    passed_over: dict[str, int] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)  # Of a table, as its head names them.
    classes: int = 0  # How many.
    captions: int = 0  # Different captions of all pairs.
    captions_repeat: bool = False  # Whether two pairs to train on have one caption.
    # Image files of a folder, with caption or without, the first thousand.
    pictures: list[str] = field(default_factory=list)
    suite: str | None = None  # Name of the zero-shot task that its labels answer.
    image_size: int  # Side of the prepared images, in pixels.
    bytes_needed: int  # Size of the prepared images on the disk.
    bytes_free: int  # What the disk of the workspace has.
    # Split -> hash of what a run learns from; once pictures were opened.
    fingerprints: dict[str, str] = field(default_factory=dict)
    trouble: str = ""  # Why nothing can be trained on it; a sentence with its next step, empty if something can.

    @property
    def found(self) -> int:
        """The number of items that looked like a pair."""
        return self.used + len(self.problems) + len(self.other_parts)


def survey(data: config.Data, *, image_size: int, workspace_folder: Path, opened: bool, progress: Progress) -> Survey:
    """Return the contents of a data set.

    Args:
        image_size: Side of the prepared images, in pixels.
        workspace_folder: Holds the caches. With `opened` the pictures are prepared there, as a run would do it.
        opened: Open every picture, to know which ones cannot be read or are odd; else only list the pairs.
    """
    data = config.absolute(data)
    beside = _beside(data, progress)
    facts: dict[str, Any] = {
        "data": data,
        "opened": opened,
        "image_size": image_size,
        "bytes_free": _free(workspace_folder),
        **beside,
    }
    try:
        read = _opened if opened else _listed
        facts |= read(data, image_size, workspace_folder, progress)
    except DataError as error:
        used = sum(error.pairs.values())
        facts |= {"pairs": error.pairs if used else {}, "examples": [], "used": used, "trouble": str(error)}
        facts |= {"name": config.data_name(data), "problems": error.problems}
        facts |= {"bytes_needed": bytes_needed(used, image_size)}
    return Survey(**facts)


def _listed(data: config.Data, image_size: int, workspace_folder: Path, progress: Progress) -> dict[str, Any]:
    index = listing(data, workspace_folder, progress)
    sources = [source for part in index.splits.values() for source in part]
    if not sources:
        first = f" The first: {index.problems[0][0]}: {index.problems[0][1]}" if index.problems else ""
        raise DataError(f"{index.name} has no pair to train on.{first}", index.problems)
    return {
        "name": index.name,
        "pairs": {split: len(part) for split, part in index.splits.items()} if len(index.splits) > 1 else {},
        "examples": _examples(index.splits["train"]),
        "used": len(sources),
        "problems": index.problems,
        "other_parts": index.log.other_parts,
        "remarks": index.log.remarks,
        "notes": [*index.log.notes, *_notes((str(listed.path), listed.caption) for listed in sources)],
        "split": split_sentence(data, index),
        "classes": len({source.label for source in sources} - {""}),
        "captions": len({source.caption for source in sources}),
        "captions_repeat": captions_repeat(source.caption for source in parts_of(data, index)["train"]),
        "suite": index.suite.name if index.suite else None,
        "bytes_needed": bytes_needed(len(sources), image_size),
    }


def _opened(data: config.Data, image_size: int, workspace_folder: Path, progress: Progress) -> dict[str, Any]:
    splits = load(data, image_size=image_size, workspace_folder=workspace_folder, progress=progress)
    parts = [splits.train, *splits.heldout.values()]
    return {
        "name": splits.train.name,
        "pairs": {part.split: len(part) for part in parts},
        "examples": _examples_of(splits.train, getattr(data, "path", "")),
        "used": splits.report.used,
        "problems": splits.report.problems,
        "other_parts": splits.report.other_parts,
        "remarks": splits.report.remarks,
        "notes": [*splits.report.notes, *_notes(pair for part in parts for pair in zip(part.paths, part.captions))],
        "split": splits.report.split,
        "classes": len({label for part in parts for label in part.labels} - {""}),
        "captions": len({caption for part in parts for caption in part.captions}),
        "captions_repeat": captions_repeat(splits.train.captions),
        "suite": splits.suite.name if splits.suite else None,
        "bytes_needed": bytes_needed(splits.report.used, image_size),
        "fingerprints": {part.split: part.fingerprint for part in parts},
    }


def _notes(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return remarks on all captions, for the default towers."""
    model = preset(PRESET).model
    assert isinstance(model, config.TinyTowers)
    return caption_notes(pairs, model)


def as_json(survey: Survey) -> dict[str, Any]:
    """Return everything but images and report lines, as plain values."""
    plain = {f.name: getattr(survey, f.name) for f in dataclasses.fields(survey)}
    for name in ("data", "problems", "other_parts", "remarks", "examples", "pictures"):
        del plain[name]
    return {
        "recognized": _options(survey.data),
        "found": survey.found,
        **plain,
        "examples": [dataclasses.asdict(example) for example in survey.examples],
    }


def report_lines(survey: Survey) -> Iterator[tuple[str, str, str]]:
    """Yield (item, `not used`, `note` or `used with a warning`, reason) for everything in the report."""
    yield from ((item, "not used", reason) for item, reason in (*survey.problems, *survey.other_parts))
    yield from ((survey.name, "note", sentence) for sentence in survey.notes)
    yield from ((item, "used with a warning", remark) for item, remark in survey.remarks)


def answer_read_data(question: ReadData, workspace_folder: Path, progress: Progress) -> ReadDataAnswer:
    """Return the answer to the question; the lines of the report are in a file.

    Raises:
        ConfigError: There is nothing there, nothing of a known kind, or an option does not fit.
    """
    chosen = question.data
    proposal = None if chosen else propose(question.path)
    data = proposal.data if proposal else config.from_dict({"data": chosen}, source="data").data
    about = {"image_size": question.image_size, "opened": question.opened}
    surveyed = survey(data, workspace_folder=workspace_folder, progress=progress, **about)
    scratch = confined.make_folder(derived.root(workspace_folder), "scratch")
    report = scratch / f"import-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
    lines = "".join(json.dumps(line) + "\n" for line in report_lines(surveyed))
    confined.write(scratch, report.name, lines.encode("utf-8"))
    counts = {"not_used": surveyed.found - surveyed.used, "odd": len(surveyed.remarks)}
    ways = {"question": proposal.question, "others": [_options(other) for other in proposal.others]} if proposal else {}
    files = {"pictures": surveyed.pictures, "report": str(report)}
    return msgspec.convert(as_json(surveyed) | counts | ways | files, ReadDataAnswer)


def _options(data: config.Data) -> dict[str, Any]:
    return {"kind": data.kind, "label": data.label, **dataclasses.asdict(data)}


def _examples(sources: Sequence[Source]) -> list[Example]:
    chosen = [sources[row] for row in _spread(len(sources))]
    return [Example(str(source.path), source.relative, source.caption, source.label, "train") for source in chosen]


def _examples_of(pairs: Pairs, root: str) -> list[Example]:
    def example(row: int) -> Example:
        path = pairs.paths[row]
        return Example(path, _item(location(path), root), pairs.captions[row], pairs.labels[row], pairs.split)

    return [example(row) for row in _spread(len(pairs))]


def _item(location: Location, root: str) -> str:
    """Return the report's name for an image below `root`, in a tar or in a table."""
    if isinstance(location, Path):
        return location.relative_to(root).as_posix() if root and location.is_relative_to(root) else location.name
    return f"{location.file.name}/{location.name if isinstance(location, Member) else location.row}"


def _spread(n: int) -> list[int]:
    """Return ten of n rows, evenly spaced, since the first ten of a class folder would all be of one class."""
    return np.unique(np.linspace(0, n - 1, EXAMPLES).round().astype(int)).tolist() if n else []


def _beside(data: config.Data, progress: Progress) -> dict[str, Any]:
    """Return what a folder or table shows before its pairs are listed."""
    if isinstance(data, config.Table):
        return {"columns": columns_of(Path(data.path), data.separator)}
    root = Path(getattr(data, "path", ""))
    if not isinstance(data, config.Folder | config.ClassFolder) or not root.is_dir():
        return {}
    return _walked(root, progress)


def _walked(root: Path, progress: Progress) -> dict[str, Any]:
    others: Counter[str] = Counter()
    pictures: list[str] = []
    seen = 0
    for folder, below, files in untrusted_files.walk(root):
        others["hidden"] += sum(name.startswith(".") for name in (*below, *files))
        parts = [os.path.splitext(name) for name in files if not name.startswith(".")]
        image_parts = [(stem, ending) for stem, ending in parts if ending.lower() in {*SUFFIXES, *NOT_READ}]
        stems = {name for stem, ending in image_parts for name in (stem, stem + ending)}
        pictures += [os.path.join(folder, stem + ending) for stem, ending in parts if ending.lower() in SUFFIXES]
        for stem, ending in ((stem, ending.lower()) for stem, ending in parts):
            if stem not in stems and ending in CAPTION_SUFFIXES and stems:
                others[f"{ending} without an image"] += 1
            elif ending not in {*SUFFIXES, *NOT_READ, *_TEXTS}:
                others[ending or "no ending"] += 1
        for _ in parts:
            seen += 1
            if seen % TOLD_EVERY == 0:
                progress(0.0, f"Looking into the folder: {seen:,} files")
    return {"pictures": sorted(pictures)[:PICTURES], "passed_over": {k: n for k, n in others.most_common() if n}}


def _free(folder: Path) -> int:
    """Return the free disk space where `folder` is or will be, in bytes."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return shutil.disk_usage(existing).free
