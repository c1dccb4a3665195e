"""`trainer report`: writes a comparison of runs as a self-contained page, or as a folder with every file."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainer.analysis.quantities import duration
from trainer.cli import compare
from trainer.cli._chart_kinds import export_files
from trainer.cli.export import map as export_map
from trainer.distribution import installed
from trainer.distribution.bundle_files import USUAL
from trainer.errors import UserError
from trainer.store.files import told_if_unwritable, write_atomically, write_for_user
from trainer.untrusted.terminal import say, say_json

if TYPE_CHECKING:
    from trainer.charts.measures.comparison import Comparison
    from trainer.experiments.verdict import ExperimentVerdict
    from trainer.render_html.report import LiveSection, ReportFigure
    from trainer.store import RunRow, Workspace

Cells = tuple[str, ...]
GROUP = "Share"
HELP = "compare runs on one self-contained page, or in a folder with every figure and number"

MOST_UMAP: Final = 30_000
"""Pairs of a snapshot that a report still arranges by UMAP."""
_CURVES = (
    "val/image_to_text_R@1",
    "val/text_to_image_R@1",
    "combinations/image_to_text_R@1",
    "val/zero_shot_acc1",
    "val/auc_hard10",
    "val/modality_gap",
    "val/knn_acc1",
    "val/knn_words",
    "train/loss",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the runs and the output."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="numbers, names or folders; A first")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE|DIR", help="one .html, or a folder")
    parser.add_argument("--live", action="store_true", help="with maps to zoom into, pictures, histograms and sliders")
    parser.add_argument("--method", default="pca", choices=("pca", "umap"), help="of the live maps (pca)")
    parser.add_argument("--color", default="", metavar="BY", help="of the live maps: modality, label, a column ...")
    parser.add_argument("--without", nargs="+", default=(), choices=USUAL, help="figures to leave out")


def run(args: argparse.Namespace) -> int:
    """Write the page or the folder and print its location."""
    from trainer.render_mpl.files import json_text

    live = export_map.Placement(method=args.method, color=args.color) if args.live else None
    values = write_report(args.workspace, args.runs, args.out, live=live, without=args.without)
    say_json(json_text(values)) if args.json else say(values["report"])
    return 0


def write_report(
    workspace: Workspace,
    runs: Sequence[int | str],
    out: Path,
    *,
    title: str = "",
    live: export_map.Placement | None = None,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the report and return the contents of `metrics.json` and the report's location.

    Args:
        runs: Numbers, names or folders; A first.
        out: A name that ends in `.html` becomes one page that holds everything; any other a folder with
            that page as `index.html` and the figures and numbers beside it.
        title: Heading of the page; if empty, the arms of the runs' experiment, or the names of the runs.
        live: How points of maps to zoom into are placed and colored (no color: by class where there is one); None: the
            page has none.
        without: Figures that are left out, of `USUAL`.

    Raises:
        UserError: The place cannot be written.
    """
    if out.suffix.lower() not in (".html", ".htm"):
        return _write_folder(workspace, runs, out, title, live, without)
    with tempfile.TemporaryDirectory() as scratch:
        values = _write_folder(workspace, runs, Path(scratch), title, live, without)
        page = Path(values["report"]).read_text(encoding="utf-8")
    write_for_user(out, lambda draft: draft.write_text(page, encoding="utf-8"))
    return values | {"report": str(out)}


def _write_folder(
    workspace: Workspace,
    runs: Sequence[int | str],
    folder: Path,
    title: str,
    live: export_map.Placement | None,
    without: Sequence[str],
) -> dict[str, Any]:
    from trainer.charts.comparison import CHART as COMPARISON
    from trainer.charts.measures.comparison import comparison
    from trainer.experiments.over_seeds import verdict_of
    from trainer.render_html.experiment_page import verdict_section
    from trainer.render_html.report import Report, page
    from trainer.render_mpl.files import json_text

    folder = folder.absolute()
    rows = [workspace.runs.get(ref) for ref in runs]
    table, verdict = comparison(workspace, runs), verdict_of(workspace, rows)
    verdict = verdict if verdict is not None and verdict.is_measured else None
    with told_if_unwritable(folder, "Choose another folder."):
        folder.mkdir(parents=True, exist_ok=True)
        figures = _figures(workspace, rows, folder, without)
        maps, large = _maps(workspace, rows, folder) if "map" not in without else ([], [])
        more, left_out = _zero_shot(workspace, rows, folder, without)
        figures += maps + more
        tables = [folder / name for name in ("comparison.md", "comparison.csv")]
        compare.write_table(tables, COMPARISON, table, COMPARISON.settings())
        values = _metrics(workspace, rows, table)
        _write(folder / "metrics.json", f"{json_text(values, indent=1)}\n")
        report = Report(
            title=title or _title(rows, verdict),
            verdict=verdict_section(verdict) if verdict else "",
            facts=_facts(workspace, rows),
            differences=_differences(workspace, rows, verdict),
            table=table,
            figures=figures,
            left_out=large + left_out,
            live=_live(workspace, rows, live) if live else None,
            made=f"Made on {values['made']} by Contrastive Explorer {values['version']}.",
        )
        _write(folder / "index.html", page(report, folder))
    return {"report": str(folder / "index.html"), **values}


def _title(rows: Sequence[RunRow], verdict: ExperimentVerdict | None) -> str:
    """Return `CLIP against CLOOB on emoji, 3 seeds` of an experiment, else the names of the runs."""
    from trainer import config

    arms = [*dict.fromkeys(row.arm for row in rows)]
    if verdict is None or len(rows) <= len(arms):
        return " against ".join(row.short_name for row in rows)
    data, seeds = config.data_name(verdict.experiment.control.run.data), len(verdict.seeds)
    return f"{' against '.join(arms)} on {data}, {seeds} seed{'s' * (seeds != 1)}"


def _write(file: Path, text: str) -> None:
    write_atomically(file, lambda draft: draft.write_text(text, encoding="utf-8"))


def _figures(workspace: Workspace, rows: list[RunRow], folder: Path, without: Sequence[str]) -> list[ReportFigure]:
    from trainer.charts.measures.curves import CurveSettings
    from trainer.render_html.report import ReportFigure

    refs = [row.id for row in rows]
    logged = {name for row in rows for name in workspace.results.scalar_names(row.id)}
    metrics = [name for name in _CURVES if name in logged]
    if "val/auc_hard10" not in logged:
        metrics += sorted(name for name in logged if name.startswith("val/auc_hard"))
    figures = []
    if metrics and "curves" not in without:
        settings = CurveSettings(metrics=tuple(metrics))
        line = export_files(workspace, "curves", refs, _files(folder, "curves"), settings)
        text = "Held-out metrics share an axis; losses of different objectives are different quantities and do not."
        figures.append(ReportFigure("curves", "Training curves", text, line))
    paired = _paired(workspace, rows)
    if not paired or "similarity" in without:
        return figures
    line = export_files(workspace, "similarity", paired, _files(folder, "similarity"))
    text = (
        "Filled: the cosine of each image with its own text. Outlined: with the ten most similar texts of other "
        "captions. AUC, d′ and overlap measure how well the two separate; dashed lines are means."
    )
    text = _with_note(workspace, "similarity", paired, text)
    figures.append(ReportFigure("similarity", "Matched and unmatched pairs", text, line))
    return figures


def _with_note(workspace: Workspace, view: str, runs: Sequence[int], text: str) -> str:
    """Return the text of a figure with what the window's line says of these runs."""
    from trainer.charts.seed_note import seed_note

    return " ".join(filter(None, (text, seed_note(workspace, view, runs))))


def _zero_shot(
    workspace: Workspace, rows: list[RunRow], folder: Path, without: Sequence[str]
) -> tuple[list[ReportFigure], list[tuple[str, str]]]:
    """Return figures that need a checkpoint, and why any could not be drawn."""
    from trainer.render_html.report import ReportFigure

    paired = _paired(workspace, rows)
    kinds = (
        (
            "calibration",
            "Calibration of zero-shot probabilities",
            "Confidence against accuracy at the training temperature; the diamond is the temperature that fits "
            "best on these same images.",
        ),
        (
            "prompts",
            "Prompt templates and classes",
            "Accuracy of each class with each template alone, as points above or below the mean of all templates.",
        ),
    )
    figures, left_out = [], []
    for stem, title, text in (each for each in kinds if paired and each[0] not in without):
        try:
            line = export_files(workspace, stem, paired, _files(folder, stem))
            figures.append(ReportFigure(stem, title, _with_note(workspace, "prompts", paired, text), line))
        except UserError as problem:
            left_out.append((title, str(problem)))
    return figures, left_out


def _maps(workspace: Workspace, rows: list[RunRow], folder: Path) -> tuple[list[ReportFigure], list[tuple[str, str]]]:
    """Return the maps, and which of them would take too long."""
    from trainer.charts.snapshots import choose_snapshot
    from trainer.charts.spec import Request, targets_of
    from trainer.render_html.report import ReportFigure

    titles = {"pca": "Map, principal components", "umap": "Map, UMAP"}
    texts = {
        "pca": "Images (discs) and texts (diamonds) in one plane; a gap between the modalities stays visible.",
        "umap": "Neighborhoods are kept, distances between clusters are not, so they are not meaningful.",
    }
    figures = []
    colors = ["modality", *_class_column(workspace, rows)]
    request = Request(targets_of([row.id for row in rows]))
    most = max(choose_snapshot(workspace, row).n for row in rows)
    for method in ("pca", "umap") if most <= MOST_UMAP else ("pca",):
        for color in colors:
            stem = f"map-{method}-{color}".replace("/", "_")
            placement = export_map.Placement(method=method, color=color)
            written = export_map.write(workspace, request, _files(folder, stem), placement=placement)
            title = f"{titles[method]}, colored by {color.replace('_', ' ')}"
            text = _with_note(workspace, "map", [row.id for row in rows], texts[method])
            figures.append(ReportFigure(stem, title, text, written.command))
    why = f"{most:,} pairs take many minutes. trainer export map --method umap draws it."
    return figures, [(titles["umap"], why)] if most > MOST_UMAP else []


def _live(workspace: Workspace, rows: list[RunRow], placement: export_map.Placement) -> LiveSection:
    """Return the part of the page with maps to zoom into."""
    from trainer.charts.spec import Request, targets_of
    from trainer.cli._progress import report
    from trainer.projection.live_maps import live_maps
    from trainer.render_html import live_map
    from trainer.render_html.report import LiveSection

    color = placement.color or next(iter(_class_column(workspace, rows)), "modality")
    request = Request(targets_of([row.id for row in rows]))
    data = live_maps(workspace, request, placement=placement, color=color, progress=report)
    return LiveSection(live_map.section(data), live_map.style(), live_map.policy())


def _class_column(workspace: Workspace, rows: list[RunRow]) -> list[str]:
    """Return the class column if every run's items have one that distinguishes them."""
    from trainer.charts.map import color_columns
    from trainer.charts.snapshots import choose_snapshot
    from trainer.store import read_snapshot

    columns = [color_columns(read_snapshot(choose_snapshot(workspace, row).folder).items) for row in rows]
    return ["label"] if all("label" in names for names in columns) else []


def _paired(workspace: Workspace, rows: list[RunRow]) -> list[int]:
    """Return the runs that embed both images and texts, since only these have matched pairs."""
    return [row.id for row in rows if workspace.runs.config_of(row.id).objective.compares_pairs]


def _files(folder: Path, stem: str) -> list[Path]:
    return [folder / f"{stem}.{kind}" for kind in ("svg", "png", "csv")]


def _metrics(workspace: Workspace, rows: list[RunRow], table: Comparison) -> dict[str, Any]:
    from trainer.charts.measures.comparison import as_values
    from trainer.charts.snapshot_label import document_with_full_names

    paired = _paired(workspace, rows)
    return {
        "made": time.strftime("%Y-%m-%d %H:%M %Z"),
        "version": installed.version(),
        "runs": [_run_values(workspace, row) for row in rows],
        "comparison": document_with_full_names(workspace, as_values(table)),
        "similarity": _numbers(workspace, "similarity", paired) if paired else {},
        "geometry": _numbers(workspace, "geometry", paired) if paired else {},
    }


def _numbers(workspace: Workspace, kind: str, runs: Sequence[int]) -> list[dict[str, Any]]:
    """Return the values of `trainer analyze KIND` for these runs."""
    from trainer.charts.registry import load
    from trainer.charts.snapshot_label import with_full_names
    from trainer.charts.spec import Request, targets_of

    chart = load(kind)
    settings = chart.settings()
    data = chart.result(workspace, Request(targets_of(runs)), settings, lambda _share, _note: None)
    return with_full_names(workspace, chart.numbers(data, settings))


def _run_values(workspace: Workspace, row: RunRow) -> dict[str, Any]:
    from trainer import config

    return {
        "run": row.id,
        "name": row.name,
        "label": row.short_name,
        "objective": row.objective,
        "data": row.data,
        "status": row.status,
        "step": row.step,
        "duration_s": row.duration_s,
        "facts": row.facts,
        "config": config.flatten(workspace.runs.config_of(row.id)),
        "evaluations": [
            {"dataset": e.dataset, "split": e.split, "step": e.step, "metrics": e.metrics}
            | {"question": dataclasses.asdict(e.question) if e.question else None}
            for e in workspace.results.answers(row.id)
        ],
    }


def _facts(workspace: Workspace, rows: list[RunRow]) -> list[dict[str, str]]:
    from trainer.charts import objective_label
    from trainer.scheduling import energy

    used = {row.id: workspace.results.last_values(row.id).get(energy.METRIC) for row in rows}
    facts = []
    for row in rows:
        wh = used[row.id]
        facts.append({
            "Run": row.short_name,
            "Objective": objective_label(row.objective),
            "Data": row.data,
            "Status": row.status,
            "Steps": f"{row.step:,}",
            "Training time": duration(row.duration_s) or "–",
        })  # fmt: skip
        if any(used.values()):
            facts[-1]["Energy of the GPUs"] = "–" if wh is None else energy.words(wh)
    return facts


def _differences(workspace: Workspace, rows: Sequence[RunRow], verdict: ExperimentVerdict | None) -> list[Cells]:
    """Return a heading and a line for each field in which runs differ; of an experiment, in which its arms do."""
    from trainer import config

    columns = [*reversed({row.arm if verdict else row.id: row for row in reversed(rows)}.values())]
    runs = [workspace.runs.config_of(row.id) for row in columns]
    flat = [config.flatten(run) for run in runs]
    fields = dict.fromkeys(field for values in flat for field in values if field != "name")
    table = [
        (_title_of(field, config.field_label(runs, field)), *(_value_text(values.get(field)) for values in flat))
        for field in fields
    ]
    lines = [line for line in table if len(set(line[1:])) > 1]
    names = [row.arm if verdict else row.short_name for row in columns]
    return [("Field", *names), *lines] if lines else []


def _title_of(field: str, label: str) -> str:
    """Return `Objective: Initial 1/tau` of a dotted field with this label."""
    section = field.rpartition(".")[0].capitalize()
    return f"{section}: {label}" if section else f"{label[:1].upper()}{label[1:]}"


def _value_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
