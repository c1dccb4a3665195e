"""Short labels of runs: `CLIP · s0` on every plot, table and file, unique in a workspace; a new name makes another.

They hold what tells the runs of a workspace apart: its first data are not named, any other data are.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from trainer import config
from trainer.config.elsewhere import ELSEWHERE

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_CHARACTERS: Final = 32
"""Of a label: it is drawn whole everywhere, in a legend as in a table's head."""

NUMBER_ROOM: Final = len(" (2)")
"""Characters of them that stay free behind a seed: for the number of a run that is like another."""
_FIELD_ROOM: Final = 16
"""Characters of a field in which runs differ, at most; another field tells them apart where it is longer."""
_FIRST: Final = ("optimizer.epochs", "optimizer.batch_size")
_SAYS_NOTHING: Final = ("name", "seed", "device", "optimizer.warmup_steps", "watching", "data.path")
_SEED: Final = re.compile(r" · s(\d{1,6})((?: \([^()]+\))*)$")


def label_of(run: config.Run, *, preset: str = "", arm: str = "", named: bool = False, other_data: bool = True) -> str:
    """Return the label of a run before it is compared with others: what was trained, and its seed or name.

    Where nobody typed a name it names the data, if they are others than Scenes: `CLIP · flowers · s0`.

    Args:
        preset: Name of the preset it comes from.
        arm: Its arm of an experiment: arms differ, and so do their seeds.
        named: Whether a person gave its name, even that of the preset.
        other_data: Whether its data tell it from other runs.
    """
    if isinstance(run.objective, ELSEWHERE["objective"]):
        return shortened(run.name)
    method = arm or run.objective.label
    unnamed = (preset, "run", "", config.named_after(run.data, run.objective.kind))
    if arm or (not named and re.sub(r" \d+$", "", run.name) in unnamed):
        trained = method if run.data.is_drawn or not other_data else f"{method} · {config.data_name(run.data)}"
        seed = f" · s{run.seed}"
        return shortened(trained, MOST_CHARACTERS - len(seed) - NUMBER_ROOM) + seed
    if method.casefold() in run.name.casefold():
        return shortened(run.name)
    return shortened(f"{method} · {run.name}")


def new_label(
    connection: Connection, run: config.Run, run_id: int | None = None, *, experiment: str = "", **about: Any
) -> str:
    """Return the label of a run in its workspace; `about` is as of `label_of`.

    Labels stay, so those of one data set are alike: the first ones decide whether they name it. If another run has it,
    what differs stands behind the seed, `CLIP · s0 (6 epochs)`, for all seeds of an arm: a field, the day, a number.
    """
    from sqlalchemy import select

    from trainer.store import schema

    columns = [schema.run.c[name] for name in ("data", "label", "config", "experiment", "arm", "created_at")]
    others = connection.execute(select(*columns).where(schema.run.c.id != (run_id or 0))).all()
    data, labels = config.data_name(run.data), {str(other.label): other for other in others}
    heads = [head for other in others if other.data == data and (head := parts_of(other.label)[0]) != other.label]
    other_data = any(" · " in head for head in heads) if heads else any(other.data != data for other in others)
    label = label_of(run, other_data=other_data, **about)
    arm = (experiment, about.get("arm", ""))
    of_arm = [
        seed[2] for each in labels.values() if (each.experiment, each.arm) == arm and (seed := _SEED.search(each.label))
    ]
    behind = [*(text for text in of_arm[:1] if experiment and text)]
    if label in labels and _SEED.search(label):
        behind += (f" ({text})" for text in _differing(run, labels[label]))
    free = (candidate for text in behind if (candidate := _behind(label, text)) not in labels)
    return next(free, None) or free_label(connection, label, run_id)


def _differing(run: config.Run, other: Any) -> Iterator[str]:
    """Yield short texts of what tells a new run from another of the same label: fields, then the day."""
    try:
        before = config.from_toml(other.config)
    except config.ConfigError:
        return
    fields = [(key, value) for key, _, value in config.difference(before, run) if not key.startswith(_SAYS_NOTHING)]
    for key, value in sorted(fields, key=lambda field: [field[0] != first for first in _FIRST]):
        if value is None:
            continue
        value_text = {True: "on", False: "off"}[value] if isinstance(value, bool) else f"{value}"
        text = f"{config.field_label([run], key).casefold()} {value_text}"
        text = {"optimizer.epochs": f"{value} epochs", "optimizer.batch_size": f"batch {value}"}.get(key, text)
        if len(text) <= _FIELD_ROOM and text.isprintable() and not {*"()"} & {*text}:
            yield text
    today, day = (time.strftime("%d %b", time.localtime(at)).lstrip("0") for at in (time.time(), other.created_at))
    if day != today:
        yield today


def _behind(label: str, text: str) -> str:
    """Return the label with a text behind its seed; what was trained is cut where both have no room."""
    seed = _SEED.search(label)
    head, tail = (label[: seed.start()], f"{seed[0]}{text}") if seed else (label, text)
    return shortened(head, MOST_CHARACTERS - len(tail)) + tail


def free_label(connection: Connection, label: str, run_id: int | None = None) -> str:
    """Return the label, or with the first free number behind it if another run has it."""
    from sqlalchemy import select  # charts take labels apart without a database

    from trainer.store import schema

    taken = set(connection.scalars(select(schema.run.c.label).where(schema.run.c.id != (run_id or 0))))
    candidate, count = label, 1
    while candidate in taken:
        count += 1
        candidate = _behind(label, f" ({count})")
    return candidate


def read_back_label(connection: Connection, values: Mapping[str, Any], run_id: int) -> str:
    """Return the label of a run that is read from its folder: the one it had, if no other run has it."""
    if label := shortened(str(values.get("label") or "")):
        return free_label(connection, label, run_id)
    try:
        run = config.from_toml(str(values["config"]))
    except config.ConfigError:
        return free_label(connection, shortened(str(values["name"])), run_id)
    about = {name: str(values.get(name) or "") for name in ("preset", "arm")}
    return new_label(connection, run, run_id, **about)


def parts_of(label: str) -> tuple[str, int]:
    """Return what a label says was trained, and the seed that it ends with: 0 where it has none."""
    match = _SEED.search(label)
    return (label[: match.start()], int(match[1])) if match else (label, 0)


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the text on one line, cut at the end of a word where it is longer than `most` characters."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > most // 2 else cut).rstrip(" ·,") + "…"
