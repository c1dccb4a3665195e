"""The trainer's description of a data set, as the import dialog shows it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trainer import config
from trainer.messages import Example
from trainer.store.disk import room_for_cache
from trainer.untrusted import confined

Kind = (
    type[config.Folder] | type[config.ClassFolder] | type[config.Table] | type[config.Shards] | type[config.HubDataset]
)

KINDS: Final[tuple[Kind, ...]] = (config.Folder, config.ClassFolder, config.Table, config.Shards, config.HubDataset)
"""What can lie at a path."""

NOT_USED: Final = "not used"

_OPENED_AT_ONCE: Final = (20_000, 512 * 2**20)
"""Pairs and bytes up to which every picture is opened without asking."""


@dataclass(frozen=True)
class DataSource:
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
    captions_repeat: bool
    pictures: tuple[str, ...]
    bytes_needed: int
    bytes_free: int
    image_size: int
    report: str
    trouble: str
    question: str = ""
    """What the person must decide before anything is trained on it; empty if nothing is open."""
    notes: tuple[str, ...] = ()
    """Sentences about all pairs."""
    split: str = ""
    """How what is held out was chosen, as a sentence."""
    others: tuple[config.Data, ...] = ()
    """Other ways to read it, the likeliest first."""

    @property
    def is_small(self) -> bool:
        """Whether the data set is small enough to open every image without asking."""
        pairs, size = _OPENED_AT_ONCE
        return self.used <= pairs and self.bytes_needed <= min(size, room_for_cache(self.bytes_free))

    @property
    def has_own_split(self) -> bool:
        """Whether the data define a held-out split themselves; known before images are opened."""
        return not self.opened and len(self.pairs) > 1

    def to_train_on(self) -> int | None:
        """Return the number of pairs in the training split, as far as known before images are opened."""
        if "train" in self.pairs:
            return self.pairs["train"]
        share = getattr(self.data, "heldout_share", None)
        return None if share is None else round(self.used * (1 - share))


def reading(answer: Mapping[str, Any]) -> DataSource:
    """Convert the response to `read_data` to a `DataSource`."""
    plain = {f.name: answer[f.name] for f in dataclasses.fields(DataSource) if f.name in answer}
    plain |= {
        "data": _data(answer["recognized"]),
        "others": tuple(map(_data, answer.get("others", ()))),
        "examples": tuple(Example(**example) for example in answer["examples"]),
        "notes": tuple(answer["notes"]),
        "columns": tuple(answer["columns"]),
        "pictures": tuple(answer["pictures"]),
    }
    return DataSource(**plain)


def _data(options: Mapping[str, Any]) -> config.Data:
    plain = {name: value for name, value in options.items() if name != "label"}
    return config.from_dict({"data": plain}, source="data").data


def with_report(reading: DataSource, before: DataSource | None) -> tuple[DataSource, list[tuple[str, str, str]]]:
    """Return the data source and (item, outcome, reason) of every report line, unused items first.

    Of the pairs shown before, those stay that turned out to be usable. The file of the report is removed.
    """
    file = Path(reading.report)
    with file.open(encoding="utf-8") as lines:
        report = [tuple(json.loads(line)) for line in lines]
    confined.remove(file.parent, file.name)
    if before is not None and reading.opened and before.data == reading.data:
        unused = {item for item, what, _ in report if what == NOT_USED}
        reading = dataclasses.replace(reading, examples=merged(before.examples, reading.examples, unused))
    return reading, report


def as_options(data: config.Data) -> dict[str, Any]:
    """Return the type and options of the data for the request."""
    return {"kind": data.kind, **dataclasses.asdict(data)}


def at_path(kind: Kind, path: str) -> config.Data:
    """Return a data set of this type at a path, with default options."""
    return kind(name=path) if kind is config.HubDataset else kind(path=path)  # type: ignore[call-arg]


def path_field(kind: type) -> str:
    """Return the name of the field that holds the path."""
    return "name" if kind is config.HubDataset else "path"


def show_command(
    path: str, recognized: config.Data | None, chosen: config.Data | None, size: int, *, decided: bool = False
) -> list[str]:
    """Return the `trainer` arguments that read the same data; `decided` if a question had to be answered."""
    arguments = ["data", "show", "--data", path, "--image-size", f"{size}"]
    if chosen is None:
        return arguments
    now = recognized
    if decided or type(chosen) is not type(now):
        arguments += ["--set", f"data={chosen.kind}"]
        now = type(chosen)()
    for field in dataclasses.fields(chosen):
        value = getattr(chosen, field.name)
        if value != getattr(now, field.name):
            arguments += ["--set", f"data.{field.name}={value}"]
    return arguments


def merged(before: Sequence[Example], after: Sequence[Example], unused: set[str]) -> tuple[Example, ...]:
    """Return the pairs shown before, with unusable ones replaced by others."""
    examples = [example for example in before if example.item not in unused]
    paths = {example.path for example in examples}
    examples += [example for example in after if example.path not in paths]
    return tuple(examples[: max(len(before), len(after))])
