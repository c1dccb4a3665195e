"""Short labels of runs: `CLIP · s0` on every plot, table and file, unique in a workspace; a new name makes another.

They hold what tells the runs of a workspace apart: its first data are not named, any other data are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from trainer import config
from trainer.config.elsewhere import ELSEWHERE

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_CHARACTERS: Final = 32
"""Of a label: it is drawn whole everywhere, in a legend as in a table's head."""

NUMBER_ROOM: Final = len(" (2)")
"""Characters of them that stay free behind a seed: for the number of a run that is like another."""


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


def new_label(connection: Connection, run: config.Run, run_id: int | None = None, **about: Any) -> str:
    """Return the label of a run in its workspace; `about` is as of `label_of`.

    Labels stay, so those of one data set are alike: the first ones decide whether they name it.
    """
    from sqlalchemy import select

    from trainer.store import schema

    data, columns = config.data_name(run.data), (schema.run.c.data, schema.run.c.label)
    others = connection.execute(select(*columns).where(schema.run.c.id != (run_id or 0))).all()
    heads = [head for of, label in others if of == data and (head := parts_of(str(label))[0]) != label]
    other_data = any(" · " in head for head in heads) if heads else any(of != data for of, _ in others)
    return free_label(connection, label_of(run, other_data=other_data, **about), run_id)


def free_label(connection: Connection, label: str, run_id: int | None = None) -> str:
    """Return the label, or with the first free number behind it if another run has it."""
    from sqlalchemy import select  # charts take labels apart without a database

    from trainer.store import schema

    taken = set(connection.scalars(select(schema.run.c.label).where(schema.run.c.id != (run_id or 0))))
    candidate, count = label, 1
    while candidate in taken:
        count += 1
        number = f" ({count})"
        candidate = shortened(label, MOST_CHARACTERS - len(number)) + number
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
    match = re.search(r" · s(\d{1,6})(?: \(\d+\))?$", label)
    return (label[: match.start()], int(match[1])) if match else (label, 0)


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the text on one line, cut at the end of a word where it is longer than `most` characters."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[: most - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > most // 2 else cut).rstrip(" ·,") + "…"
