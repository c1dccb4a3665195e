"""The last finished runs outside of experiments: what Home says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainer.config import Cloob, ConfigError
from trainer.config.small_batches import small_batch_of_cloob
from trainer.experiments.counted import flaw_of, standing
from trainer.experiments.held_out import next_step, too_few, too_few_of
from trainer.experiments.seed_truth import measured_apart, seed_truth
from trainer.metrics import HEADLINE, headline_name, measured_on, metric, once_note
from trainer.store import RunRow, StoreError, Workspace
from trainer.store.question import noted_chance


@dataclass(frozen=True)
class LastRuns:
    """The newest two runs that finished and compare, else the newest two, or the only one."""

    runs: tuple[RunRow, ...]  # The older one first.
    headline: str  # Their values in a sentence, or that there are too few held-out pairs to compare them.
    about: str  # Of what data, on how many pairs, after how many steps, and what seeds know.
    # Those whose settings further seeds can decide between, else the newest; empty where no seed can.
    repeated: tuple[RunRow, ...] = ()
    note: str = ""  # The next step where no seed can.
    # Two runs that one data set could compare: the newest, which compares with none, last; empty for none.
    apart: tuple[RunRow, ...] = ()
    apart_note: str = ""  # Why they do not compare.
    # What these runs ended with that their values do not show, and what further seeds can expect, in sentences;
    # empty for nothing.
    flaws: str = ""


def last_runs(workspace: Workspace) -> LastRuns | None:
    """Return what to say of the last finished runs; None where no run has finished. For a thread."""
    counted = [row for row in workspace.runs.all() if not standing(row) and row.last is not None]
    ended = sorted((row for row in counted if row.archived_at is None), key=lambda row: (row.ended_at or 0, row.id))
    if not ended:
        return None
    # Opened vectors say nothing beside a training on other data.
    trained = [row for row in ended if not row.is_elsewhere] or ended
    runs = _newest_that_compare(workspace, ended) or trained[-2:]
    fields = _differing(workspace, runs[-1], runs[0]) if len(runs) > 1 else ()
    alike = len({_question(row) for row in runs}) == 1
    measured = headline_name(runs[0].metric, *(row.facts for row in runs)) if alike else ""
    chance = noted_chance(runs[0].metric, runs[0].facts) if alike else ""
    once = once_note(runs[0].metric, runs[0].facts) if alike else ""
    steps = f"{' and '.join(dict.fromkeys(f'{row.step:,}' for row in runs))} steps"
    seeds = replace(seed_truth(workspace, runs[0].id, runs[-1].id), flaws=()).text if alike else ""
    names = ", ".join(field.rpartition(".")[2].replace("_", " ") for field in fields)
    differ = f"they differ in {names}" if len(fields) > 1 else ""
    data, values = " and ".join(dict.fromkeys(row.data for row in runs)), _headline(runs, alike)
    apart, apart_note = _apart(runs, trained[-1], alike)
    repeated = tuple(runs if alike and fields else runs[-1:])
    few = too_few_of(runs if alike else repeated)
    if few is not None:
        repeated, seeds = (), ""
    is_few, small = alike and few is not None, _small_batches(workspace, repeated)
    return LastRuns(
        tuple(runs),
        headline=too_few(few) if alike and few is not None else values,
        about=" · ".join(
            filter(None, (values * is_few, data, measured, once, chance, steps, differ * (not is_few), seeds))
        ),
        repeated=repeated,
        note=f"{next_step(few)}." if few is not None else "",
        apart=apart,
        apart_note=apart_note,
        flaws=" ".join((*(f"{row.short_name} {flaw}." for row in runs if (flaw := flaw_of(row))), *small)),
    )


def _small_batches(workspace: Workspace, repeated: Sequence[RunRow]) -> list[str]:
    """Return what CLOOB does in the batches of these runs; a run alone is repeated with CLOOB, too."""
    configs = [workspace.runs.config_of(row.id) for row in repeated]
    configs += [replace(run, objective=Cloob()) for run in configs if len(configs) == 1]
    return [*dict.fromkeys(filter(None, map(small_batch_of_cloob, configs)))]


def _newest_that_compare(workspace: Workspace, ended: Sequence[RunRow]) -> list[RunRow]:
    """Return the newest run that has one to compare with, after the newest of these; empty where none has."""
    earlier: dict[object, list[RunRow]] = {}
    for row in ended:
        earlier.setdefault(_question(row), []).append(row)
    for row in reversed(ended):
        alike = earlier[_question(row)]
        alike.remove(row)
        for other in reversed(alike):
            if not measured_apart(workspace, (other.id, row.id)):
                return [other, row]
    return []


def _apart(runs: Sequence[RunRow], newest: RunRow, alike: bool) -> tuple[tuple[RunRow, ...], str]:
    """Return the newest run after one that it does not compare with, and why; nothing where it is compared."""
    if newest not in runs:
        return (runs[-1], newest), f"{newest.short_name} finished last; no other run was measured on {newest.data}."
    if alike or len(runs) == 1:
        return (), ""
    measured = [row.data if len({row.data for row in runs}) > 1 else _asked(row) for row in runs]
    first, second = (f"{row.short_name} was measured on {what}" for row, what in zip(runs, measured, strict=True))
    return tuple(runs), f"{first}, and {second}."


def _question(row: RunRow) -> tuple[object, ...]:
    return row.data, row.metric, *measured_on(row.metric, row.facts)


def _differing(workspace: Workspace, row: RunRow, other: RunRow) -> tuple[str, ...]:
    """Return in which fields two runs differ that were measured on the same pairs; empty where they do not compare."""
    from trainer.experiments.experiment import Arm, differing

    if _question(row) != _question(other):
        return ()
    try:
        arms = [Arm(str(each.id), workspace.runs.config_of(each.id)) for each in (other, row)]
    except (StoreError, ConfigError):
        return ()
    fields = differing(arms)
    others = any(field.partition(".")[0] == "data" and not field.startswith("data.train_") for field in fields)
    return () if others else fields


def _asked(row: RunRow) -> str:
    return headline_name(row.metric, row.facts)


def _headline(runs: Sequence[RunRow], alike: bool) -> str:
    if not alike:
        each = (f"{row.short_name} {metric(row.metric).text(row.last)}, {_asked(row)}" for row in runs)
        return f"Not comparable: {'; '.join(each)}"
    measure = metric(runs[0].metric)
    best = sorted(runs, key=lambda row: row.last or 0.0, reverse=measure.better != "down")
    # The line below names the data of both.
    short = [row.short_name.replace(f" · {row.data}", "") for row in best]
    names = short if len({*short}) == len(best) else [row.short_name for row in best]
    values = [(name, measure.text(row.last)) for name, row in zip(names, best, strict=True)]
    if runs[0].metric != HEADLINE:
        return f"{measure.label}: {', '.join(f'{name} {value}' for name, value in values)}"
    rest = "".join(f", {name} of {value}" for name, value in values[1:])
    return f"{values[0][0]} finds the caption of {values[0][1]} of the images{rest}"
