"""The fields in which the configurations of several runs differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from trainer import config
from trainer.analysis.progress import Progress
from trainer.charts import ChartError
from trainer.charts.marks import NumberRow, NumberTable, Panel
from trainer.charts.spec import Chart, Request
from trainer.config.fields import option
from trainer.store import Workspace
from trainer.store.run_values import plain

METHOD: Final = """\
Every field of a configuration that has not the same value in all of the runs; a dash where the objective, model or \
data of a run have no such field. Names never count."""
MOST_RUNS: Final = 24


@dataclass(frozen=True)
class ConfigDifferenceSettings:
    """Which fields."""

    every: bool = option(False, "All fields", "Those that are the same in all runs, too.", redraws=True)


class ConfigDifference(Struct, frozen=True):
    """The configurations of runs."""

    runs: tuple[tuple[int, str], ...]  # Id and name of each.
    # Field -> its value in each run, as text; an empty one where the run has no such field.
    fields: dict[str, tuple[str, ...]]

    @property
    def different(self) -> dict[str, tuple[str, ...]]:
        """The fields that differ."""
        return {name: row for name, row in self.fields.items() if len({*row}) > 1}


def compute(
    workspace: Workspace, request: Request, _settings: ConfigDifferenceSettings, _progress: Progress
) -> ConfigDifference:
    """Read the configurations.

    Raises:
        ChartError: There are too many runs.
    """
    rows = [workspace.runs.get(target.run) for target in request.targets]
    rows = list({row.id: row for row in rows}.values())
    if len(rows) > MOST_RUNS:
        raise ChartError(f"{len(rows)} runs are too many for one table; choose at most {MOST_RUNS}.")
    flat = [config.flatten(workspace.runs.config_of(row.id)) for row in rows]
    names = [name for name in dict.fromkeys(name for config_fields in flat for name in config_fields) if name != "name"]
    fields = {
        name: tuple(plain(config_fields[name]) if name in config_fields else "" for config_fields in flat)
        for name in names
    }
    return ConfigDifference(tuple((row.id, row.short_name) for row in rows), fields)


def draw(data: ConfigDifference, settings: ConfigDifferenceSettings) -> Panel:
    """Draw one table, a column per run."""
    fields = data.fields if settings.every else data.different
    lines = tuple(NumberRow(name, "", tuple(value or "–" for value in row)) for name, row in fields.items())
    same = len(data.fields) - len(data.different)
    note = f"{len(data.different)} fields differ, {same} are the same in all {len(data.runs)} runs."
    columns = tuple(name for _, name in data.runs)
    title = "Fields of the configurations" if settings.every else "Fields that differ"
    return Panel(title="Configurations", rows=((NumberTable("fields", title, columns, lines),),), notes=(note,))


CHART: Final = Chart(
    view="run_comparison",
    label="Configurations",
    question="Fields in which the configurations of these runs differ.",
    cost="Grows with the runs; numbers that are stored are read, so the size of the data does not matter.",
    method=METHOD,
    settings=ConfigDifferenceSettings,
    needs="whole_runs",
    compute=compute,
    draw=draw,
)
