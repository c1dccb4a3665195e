"""Every chart of the registry as a function: `charts.hubness(run_a, run_b, k=5)` returns its data and its figure.

The name of a function is that of the chart with underscores: `charts.hopfield_retrieval`. `dir(charts)` lists them.

>>> from trainer import api as ce
>>> chart = ce.charts.hubness(ce.workspace("runs").run("squares"), k=5)
>>> chart.name, "chart" in chart.rows()
('hubness', True)
>>> len(chart.figure().axes) > 0
True
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.analysis.progress import silent
from trainer.api.frames import frame_of_rows
from trainer.charts import ChartError
from trainer.charts.marks import Panel
from trainer.charts.registry import load, names
from trainer.charts.seed_note import with_seed_note
from trainer.charts.settings import checked, options
from trainer.charts.snapshot_label import with_full_names
from trainer.charts.spec import Chart, Request, request_words, targets_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from trainer.api.runs import RunHandle


@dataclass(frozen=True)
class ComputedChart:
    """A chart of some runs.

    Attributes:
        name: Of the chart.
        data: The computed numbers, frozen dataclasses of `trainer.charts`.
        values: The numbers that `trainer analyze` prints, a dictionary per column.
        panel: The marks that the window and the figure draw.
        command: The command line that draws the same, without `--out`.
    """

    name: str
    data: Any
    values: list[dict[str, Any]]
    panel: Panel
    command: str

    def rows(self) -> pd.DataFrame:
        """Return every drawn number as a data frame: mark, series, x, y, and the ends of its interval.

        Raises:
            MissingPandas: pandas is not installed.
        """
        from trainer.charts.panel_rows import HEADER, panel_rows

        return frame_of_rows(HEADER, list(panel_rows(self.panel, self.name)))

    def figure(self) -> Figure:
        """Return the chart as a matplotlib figure at print size."""
        from trainer.render_mpl import panel

        return panel.draw(self.panel)

    def save(self, *files: str | Path) -> None:
        """Save the chart to SVG, PDF, PNG, CSV or Parquet files, or its tables to .md or .tex, by their suffixes.

        Raises:
            UserError: A file cannot be written.
        """
        from trainer.render_mpl.panel import write_panel

        write_panel([Path(file) for file in files], self.panel, self.name, self.command)

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG, for notebooks."""
        file = io.BytesIO()
        self.figure().savefig(file, format="png", dpi=110)
        return file.getvalue()


def chart_function(name: str) -> Callable[..., ComputedChart]:
    """Return the function of the chart `name`.

    Raises:
        ChartError: There is no such chart.
    """
    chart = load(name)

    def compute(
        *runs: RunHandle,
        step: int | list[int | None] | None = None,
        dataset: str | None = None,
        split: str | None = None,
        **settings: Any,
    ) -> ComputedChart:
        chosen = _settings(chart, settings)
        if chart.needs != "none" and not runs:
            raise ChartError(f"{chart.label} needs a run: charts.{name.replace('-', '_')}(run).")
        if len({run.store.folder for run in runs}) > 1:
            raise ChartError("The runs of one chart must be in one workspace; import the others with `runs import`.")
        steps = step if isinstance(step, list) else [] if step is None else [step]
        request = Request(targets_of([run.id for run in runs], steps), dataset, split)
        return _computed(chart, runs[0].store if runs else None, request, chosen)

    compute.__name__ = name.replace("-", "_")
    compute.__doc__ = f"{chart.question}\n\n{_help(chart)}"
    return compute


def _computed(chart: Chart[Any, Any], store: Any, request: Request, settings: Any) -> ComputedChart:
    from trainer.inference.chart_query import with_vectors
    from trainer.untrusted import shell

    request = with_vectors(store, chart, request, settings, silent)
    data = chart.result(store, request, settings, silent)
    if problems := getattr(data, "problems", ()):
        # A chart that silently lacks a run that was named would be taken for the whole.
        raise ChartError(" ".join(problems))
    command = shell.join(["trainer", "export", chart.name, *request_words(request), *options(settings)])
    values = with_full_names(store, chart.numbers(data, settings))
    panel = with_seed_note(chart.panel(data, settings), store, chart.view, request, data)
    return ComputedChart(chart.name, data, values, panel, command)


def _settings(chart: Chart[Any, Any], values: dict[str, Any]) -> Any:
    names = {field.name for field in dataclasses.fields(chart.settings)}
    if unknown := sorted(values.keys() - names):
        raise ChartError(
            f"{chart.label} has no setting {unknown[0]!r}; its settings: {', '.join(sorted(names)) or 'none'}."
        )
    return checked(chart.settings(**values))


def _help(chart: Chart[Any, Any]) -> str:
    from trainer.config.fields import fields_of

    lines = [f"    {field.name}: {field.label} (default {field.default!r})." for field in fields_of(chart.settings)]
    return "\n".join(["Settings:", *(lines or ["    none"])])


def __getattr__(name: str) -> Callable[..., ComputedChart]:
    if name.startswith("_") or name.replace("_", "-") not in names():
        raise AttributeError(f"There is no chart {name!r}; dir(charts) lists them.")
    return chart_function(name.replace("_", "-"))


def __dir__() -> list[str]:
    return ["ComputedChart", *(name.replace("-", "_") for name in names())]
