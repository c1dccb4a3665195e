"""What the trainer says of a data set, as the import sheet shows it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer import config

Kind = (
    type[config.Folder] | type[config.ClassFolder] | type[config.Table] | type[config.Shards] | type[config.HubDataset]
)

KINDS: Final[tuple[Kind, ...]] = (config.Folder, config.ClassFolder, config.Table, config.Shards, config.HubDataset)
"""What can lie at a path."""

NOT_USED: Final = "not used"

_OPENED_AT_ONCE: Final = (20_000, 512 * 2**20)
"""Pairs and bytes up to which every picture is opened without asking."""
_SPARE: Final = 64 * 2**20


@dataclass(frozen=True)
class Example:
    """A pair to look at."""

    path: str
    item: str
    caption: str
    label: str
    split: str


@dataclass(frozen=True)
class Reading:
    """A data set as the trainer reads it; see `trainer.messages.ReadData`."""

    data: config.Data
    name: str
    opened: bool
    found: int
    used: int
    not_used: int
    odd: int
    pairs: Mapping[str, int]
    examples: tuple[Example, ...]
    columns: tuple[str, ...]
    passed_over: Mapping[str, int]
    classes: int
    pictures: tuple[str, ...]
    bytes_needed: int
    bytes_free: int
    image_size: int
    report: str
    trouble: str

    @property
    def fits(self) -> bool:
        """Whether the prepared pictures have room on the disk."""
        return self.bytes_needed <= self.bytes_free - _SPARE

    @property
    def is_small(self) -> bool:
        """Whether every picture may be opened without asking."""
        pairs, size = _OPENED_AT_ONCE
        return self.used <= pairs and self.bytes_needed <= size and self.fits

    def to_train_on(self) -> int | None:
        """Pairs of the training split, as far as it is known before pictures are opened."""
        if "train" in self.pairs:
            return self.pairs["train"]
        share = getattr(self.data, "heldout_share", None)
        return None if share is None else round(self.used * (1 - share))


def reading(answer: Mapping[str, Any]) -> Reading:
    """The answer to the question `read_data`."""
    recognised = {name: value for name, value in answer["recognised"].items() if name != "label"}
    plain = {f.name: answer[f.name] for f in dataclasses.fields(Reading) if f.name in answer}
    plain |= {
        "data": config.from_dict({"data": recognised}, source="data").data,
        "examples": tuple(Example(**example) for example in answer["examples"]),
        "columns": tuple(answer["columns"]),
        "pictures": tuple(answer["pictures"]),
    }
    return Reading(**plain)


def read_report(file: Path) -> list[tuple[str, str, str]]:
    """(item, what became of it, reason) of every line, unused items first; the file is removed."""
    with file.open(encoding="utf-8") as lines:
        report = [tuple(json.loads(line)) for line in lines]
    file.unlink(missing_ok=True)
    return report


def as_options(data: config.Data) -> dict[str, Any]:
    """Kind and options, for the question."""
    return {"kind": data.kind, **dataclasses.asdict(data)}


def at_path(kind: Kind, path: str) -> config.Data:
    """A data set of this kind at a path, its options the usual ones."""
    return kind(name=path) if kind is config.HubDataset else kind(path=path)  # type: ignore[call-arg]


def path_field(kind: type) -> str:
    """The field that holds the path."""
    return "name" if kind is config.HubDataset else "path"


def wrong_fields(data: config.Data) -> dict[str, str]:
    """Field -> what is wrong with it, in a person's words."""
    found = config.problems(config.Run(data=data))
    return {key.partition(".")[2]: in_labels(words, data) for key, words in found.items() if key.startswith("data.")}


def in_labels(sentence: str, data: config.Data) -> str:
    """The sentence with the labels of the form in place of dotted fields."""
    for field in dataclasses.fields(data):
        sentence = sentence.replace(f"data.{field.name}", str(field.metadata.get("label", field.name)))
    return sentence


def names_column(reading: Reading) -> bool:
    """Whether the trouble is that a table lacks a chosen column."""
    chosen = (getattr(reading.data, name, "") for name in ("image_column", "caption_column"))
    return not set(chosen) <= set(reading.columns)


def show_command(path: str, recognised: config.Data | None, chosen: config.Data | None, size: int) -> list[str]:
    """What to write after `trainer` to read the same."""
    words = ["data", "show", "--data", path, "--image-size", f"{size}"]
    if chosen is None:
        return words
    now = recognised
    if type(chosen) is not type(now):
        words += ["--set", f"data={chosen.kind}"]
        now = type(chosen)()
    for field in dataclasses.fields(chosen):
        value = getattr(chosen, field.name)
        if value != getattr(now, field.name):
            words += ["--set", f"data.{field.name}={value}"]
    return words


def counted(reading: Reading) -> str:
    """How many pairs were found, and what became of them; a sentence or two."""
    pairs = "pair" if reading.found == 1 else "pairs"
    if reading.opened or not reading.used:
        odd = f", {reading.odd:,} of them odd" if reading.odd else ""
        return f"{reading.found:,} {pairs} found: {reading.used:,} used{odd}, {reading.not_used:,} not used."
    left_out = f", {reading.not_used:,} not used" if reading.not_used else ""
    return f"{reading.found:,} {pairs} found{left_out}. Their pictures have not been opened yet."


def described(reading: Reading) -> str:
    """Splits, classes, and what was passed over; one line, may be empty."""
    parts = []
    if len(reading.pairs) > 1:
        parts.append(", ".join(f"{pairs:,} {_SPLITS.get(split, split)}" for split, pairs in reading.pairs.items()))
    if reading.classes:
        parts.append(f"{reading.classes:,} {'class' if reading.classes == 1 else 'classes'}")
    if reading.passed_over:
        parts.append(f"passed over, being no pictures: {_few(reading.passed_over)}")
    words = "; ".join(parts)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def cost(reading: Reading, size: int) -> str:
    """What the prepared pictures take at this size, and what there is; goes on after the number of pixels."""
    needed = reading.bytes_needed * size**2 // max(reading.image_size**2, 1)
    words = f"px they take {amount(needed)}; {amount(reading.bytes_free)} are free"
    return f"{words}." if needed <= reading.bytes_free - _SPARE else f"{words}: that is too little."


def amount(size: int) -> str:
    """Bytes in MiB or GiB."""
    return f"{size / 2**20:,.1f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"


_SPLITS: Final = {"train": "to train on", "heldout": "held out"}


def _few(endings: Mapping[str, int], most: int = 4) -> str:
    named = [f"{count:,} {ending}" for ending, count in list(endings.items())[:most]]
    return ", ".join(named) + (", …" if len(endings) > most else "")


def merged(before: Sequence[Example], after: Sequence[Example], unused: set[str]) -> tuple[Example, ...]:
    """The pairs shown before, those that turned out unusable replaced by others."""
    kept = [example for example in before if example.item not in unused]
    known = {example.path for example in kept}
    kept += [example for example in after if example.path not in known]
    return tuple(kept[: max(len(before), len(after))])
