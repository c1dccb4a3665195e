"""Texts that describe in the import dialog what was read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from explorer.import_sheet.survey_result import DataSource
from trainer import config
from trainer.analysis.intervals import FEWEST_HELD_OUT
from trainer.experiments.held_out import few_answers, next_step, too_few, with_captions
from trainer.format_detection.proposal import CLASSES_BY
from trainer.metrics import RECALL_HEADING
from trainer.store.disk import room_for_cache

Explanation = tuple[str, str, str, str, str]
"""Icon, title, text, and the names of the action and of another; empty for none."""

WELCOME: Final[Explanation] = (
    "folder-open",
    "Which pairs?",
    "A folder of images with a .txt caption next to each, a folder per class, a CSV, TSV, JSONL or Parquet table, or "
    "WebDataset tars. Drop it here, or choose it. Your files stay as they are.",
    "folder",
    "file",
)
LOOKING: Final[Explanation] = (
    "folder-open",
    "Reading…",
    "Pairs are listed first, then every image is decoded.",
    "",
    "",
)
CANCELLED: Final[Explanation] = (
    "circle-stop",
    "Reading was cancelled",
    "Your files stay as they are.",
    "again",
    "",
)

_COLUMNS: Final = ("image_column", "caption_column")


def waiting(note: str) -> Explanation:
    """Return the text that reading has not started, and what it is waiting for."""
    before = note.partition(" while ")[2]
    text = f"Reading starts when a slot is free: {before}. Cancel jobs you no longer need, or wait."
    return "clock", "Queued", text, "", ""


def unreadable(name: str, sentences: str) -> Explanation:
    """Return the text that the data cannot be read, and why."""
    return "triangle-alert", f"{name} cannot be read", sentences, "again", ""


def of_trouble(reading: DataSource, lines: Sequence[tuple[str, str, str]], offers: bool = False) -> Explanation:
    """Return why there is nothing to train on and what to do; with `offers`, suggest another way to read it."""
    if reading.pictures and isinstance(reading.data, config.Folder) and not reading.opened and reading.not_used:
        first = f" The first: {lines[0][0]}. {lines[0][2]}" if lines else ""
        text = (
            "Training needs image-caption pairs: a .txt of the same name next to each image, folders named after "
            f"classes, or a table. Images without captions can be classified.{first}"
        )
        return "image", "Pictures without captions", text, "classify", "other" if offers else "again"
    if reading.columns and lacks_column(reading):
        name = Path(getattr(reading.data, "path", "")).name
        columns = ", ".join(repr(column) for column in reading.columns[:20])
        text = f"{name} has {columns}. Choose the image and caption columns above."
        return "list", "Which columns?", text, "", ""
    return "triangle-alert", "Nothing to train on", in_labels(reading.trouble, reading.data), "again", ""


def of_question(question: str, other: str) -> Explanation:
    """Return the question to the user; `other` names the action that reads the data differently, or is empty."""
    text = f"{question} Choose the meaning here, or another format above."
    return "list", "What is meant?", text, other or "as_it_is", "as_it_is" if other else ""


def keep_label(data: config.Data) -> str:
    """Return the label of the button that reads the data as they were recognized, in spite of a question."""
    if isinstance(data, config.Table):
        return way(data)
    return f"Train on these {'texts' if isinstance(data, config.Folder) else 'classes'} anyway"


def way(other: config.Data) -> str:
    """Return the label of the button that reads the data in another way."""
    if isinstance(other, config.Folder):
        return "Use the file names as captions"
    if isinstance(other, config.ClassFolder):
        return f"Use the {CLASSES_BY[other.class_from]} as classes"
    file = Path(getattr(other, "path", ""))
    return f"Read {file.parent.name if file.suffix == '.parquet' else file.name}"


def lacks_column(reading: DataSource) -> bool:
    """Return whether the problem is that a table lacks a selected column."""
    chosen = (getattr(reading.data, name, "") for name in _COLUMNS)
    return not set(chosen) <= set(reading.columns)


def wrong_fields(data: config.Data) -> dict[str, str]:
    """Map each invalid field to a message."""
    problems = config.problems(config.Run(data=data))
    return {
        key.partition(".")[2]: in_labels(reason, data) for key, reason in problems.items() if key.startswith("data.")
    }


def in_labels(sentence: str, data: config.Data) -> str:
    """Replace dotted field names in a sentence by the form's labels."""
    for field in dataclasses.fields(data):
        sentence = sentence.replace(f"data.{field.name}", str(field.metadata.get("label", field.name)))
    return sentence


def counted(reading: DataSource) -> str:
    """Return how many pairs were found and how many items are not used, in a sentence or two."""
    pairs = f"{reading.used:,} {'pair' if reading.used == 1 else 'pairs'}"
    if reading.captions > 1 and few_answers(reading.captions, reading.used):
        pairs = with_captions(reading.captions, reading.used)
    left_out = f"; {(n := reading.not_used):,} item{'s' * (n != 1)} not used" if reading.not_used else ""
    if reading.opened or not reading.used:
        odd = f", {reading.odd:,} with a warning" if reading.odd else ""
        return f"{pairs} found{odd}{left_out}."
    return f"{pairs} found{left_out}. Their images have not been decoded yet."


def split_line(reading: DataSource) -> str:
    """Return one line with how many pairs are held out, and what that rests on; empty if it is not known."""
    counts = ", ".join(f"{pairs:,} {_SPLITS.get(split, split)}" for split, pairs in reading.pairs.items())
    held = [pairs for split, pairs in reading.pairs.items() if split != "train" and pairs]
    counts += f": each is {100 / held[0]:.1f} points of {RECALL_HEADING}" if len(held) == 1 else ""
    return f"{f'{counts}. ' if len(reading.pairs) > 1 else ''}{in_labels(reading.split, reading.data)}".strip()


def warning_of(reading: DataSource) -> str:
    """Return what to expect of so few pairs: held out, with different captions; empty where enough are."""
    held = sum(pairs for split, pairs in reading.pairs.items() if split != "train")
    share = "" if reading.has_own_split else " or raise the held-out share"
    is_few = bool(reading.pairs and reading.used) and held < FEWEST_HELD_OUT
    few = f"{too_few(held)} runs. {next_step(held)}: add pairs{share}." if is_few else ""
    # `counted` has said how many captions there are.
    return " ".join(filter(None, (few, few_answers(reading.captions, reading.used))))


def described(reading: DataSource) -> str:
    """Return one line with classes, skipped items and remarks on all pairs; may be empty."""
    parts = []
    if reading.classes:
        parts.append(f"{reading.classes:,} {'class' if reading.classes == 1 else 'classes'}")
    if reading.passed_over:
        parts.append(f"skipped, not images: {_few(reading.passed_over)}")
    text = "; ".join(parts)
    first = f"{text[:1].upper()}{text[1:]}." if text else ""
    return in_labels(" ".join(filter(None, (first, *reading.notes))), reading.data)


def cost(reading: DataSource, size: int) -> str:
    """Return the disk space for prepared images of this size and the space available; follows the pixel count."""
    needed = reading.bytes_needed * size**2 // max(reading.image_size**2, 1)
    text = f"px; cache {amount(needed)} ({amount(reading.bytes_free)} free)"
    fits = needed <= room_for_cache(reading.bytes_free)
    return f"{text}." if fits else f"{text}: too large to cache, so images are decoded in every epoch."


def amount(size: int) -> str:
    """Format a number of bytes in MiB or GiB."""
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"


_SPLITS: Final = {"train": "to train on", "heldout": "held out"}


def _few(endings: Mapping[str, int]) -> str:
    named = [f"{count:,} {ending}" for ending, count in list(endings.items())[:4]]
    return ", ".join(named) + (", …" if len(endings) > 4 else "")
