"""The trainer's description of a data set, as the import dialog shows it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from trainer import config
from trainer.messages import Example, ReadDataAnswer
from trainer.store.disk import room_for_cache
from trainer.untrusted import confined

Kind = (
    type[config.Folder]
    | type[config.ClassFolder]
    | type[config.Table]
    | type[config.Shards]
    | type[config.HubDataset]
    | type[config.Named]
)

_PATH_FIELDS: Final[dict[type, str]] = {
    config.Folder: "path",
    config.ClassFolder: "path",
    config.Table: "path",
    config.Shards: "path",
    config.HubDataset: "name",
    config.Named: "root",
}

KINDS: Final[tuple[Kind, ...]] = tuple(_PATH_FIELDS)  # type: ignore[arg-type]  # these are its keys
"""What can lie at a path."""

NOT_USED: Final = "not used"

_OPENED_AT_ONCE: Final = (20_000, 512 * 2**20)
"""Pairs and bytes up to which every picture is opened without asking."""


@dataclass(frozen=True, kw_only=True)
class DataSource(ReadDataAnswer):
    """A data set as the trainer reads it."""

    @cached_property
    def data(self) -> config.Data:
        """How it is read."""
        return _data(self.recognized)

    @cached_property
    def alternatives(self) -> tuple[config.Data, ...]:
        """Other ways to read it, the likeliest first."""
        return tuple(map(_data, self.others))

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


def reading(answer: ReadDataAnswer) -> DataSource:
    """Return what the trainer answers, as the sheet shows it."""
    return DataSource(**vars(answer))


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
    return kind(**{path_field(kind): path})  # type: ignore[arg-type]  # a path is a text


def path_field(kind: type) -> str:
    """Return the name of the field that holds the path."""
    return _PATH_FIELDS[kind]


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
