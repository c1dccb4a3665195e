"""The user interface of exporting: the dialog of choices, the progress in the status bar, and the result."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import shiboken6
from PySide6.QtCore import QObject, QStandardPaths, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QWidget

from explorer.export import Export, Exporter, file_stem, shell_command
from explorer.state.settings import Settings
from explorer.views import VIEWS
from explorer.widgets.banner import Banner
from trainer.charts import ChartError, registry
from trainer.charts.figure_choices import FigureChoices, run_names
from trainer.charts.settings import parse, words
from trainer.distribution.bundle_files import DRAWING, FILTERED_MAP, MAP_FILTERS, USUAL, figure_kind, undrawn
from trainer.metrics import metric
from trainer.untrusted import confined

if TYPE_CHECKING:
    from explorer.views.view import View
    from explorer.widgets.progress_row import ProgressRow
    from explorer.window.export_dialog import ExportDialog
    from trainer.store import RunRow, Workspace

FOLDER_KEY: Final = "export/folder"
CHOICES_KEY: Final = "export/choices"
ALSO_KEY: Final = "export/also"
BUNDLES: Final = (("zip", "Zip archive"), ("folder", "New folder"))
CONTENTS: Final = (
    "And a report as one page, the configuration of each run, package versions, commands that draw the figures again"
)
"""Of a bundle besides its figures."""
_OF_RUNS: Final = ("--runs", "--step", "--dataset", "--split")
_NOTHING: Final = "There is nothing to export in this view yet."
_COMPUTES: Final = ("The view still computes.", "Export it when the chart is there.")
_NEXT: Final = "Choose a run with results for A or B first."


class Exports(QObject):
    """Exports of the open view."""

    def __init__(
        self, window: QWidget, exporter: Exporter, settings: Settings, banner: Banner, row: ProgressRow, folder: Path
    ) -> None:
        """Create what exports to files; `row` shows the progress of the newest one that runs."""
        super().__init__(window)
        self._window, self.exporter, self._settings, self.banner = window, exporter, settings, banner
        self.writing, self._folder = row, folder
        row.note.setMinimumWidth(row.fontMetrics().horizontalAdvance("Exporting folder… less than 1 min left"))
        row.cancelled.connect(lambda: exporter.cancel(exporter.running[-1]))
        exporter.done.connect(self._done)
        exporter.failed.connect(self._failed)
        exporter.progressed.connect(self._show_progress)
        exporter.cancelled.connect(self._cancelled)
        self.bundles: dict[Path, Path] = {}
        self._figures: list[list[str]] = []
        self._left_out: list[str] = []

    def ask(self, view: View, suffix: str) -> None:
        """Ask for a file, `suffix` first; the dialog offers every format of the view, and does not block the window."""
        command = view.command_for(suffix or view.exports[0][0])
        if command is None:
            # A view that computes has its runs: to choose others would not help.
            computes = view.area.kind in ("unknown", "loading")
            self.banner.show_message(*(_COMPUTES if computes else (_NOTHING, _NEXT)), tone="info")
            return
        # The one that is asked for comes first.
        formats = sorted(view.exports, key=lambda entry: entry[0] != suffix)
        self._open(
            exported_name(view.command() or command, view.title),
            formats,
            view.command_for,
            file_stem(command, self._names(view.context.jobs.runs)),
        )

    def _open(
        self,
        title: str,
        formats: Sequence[tuple[str, str]],
        command_for: Callable[[str], Sequence[str] | None],
        stem: str,
        example: Sequence[str] = (),
        contents: str = "",
        figures: Mapping[str, str] | None = None,
    ) -> ExportDialog:
        """Open the dialog with the choices of last time."""
        from explorer.window.export_dialog import ExportDialog, free_stem
        from explorer.window.figure_previews import FigurePreviews

        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        folder = Path(str(self._settings.value(FOLDER_KEY) or documents))
        dialog = ExportDialog(
            title,
            formats,
            command_for,
            free_stem(folder, stem, [suffix for suffix, _ in formats]),
            FigurePreviews(self._folder),
            choices=self._remembered(),
            also=self._settings.value(ALSO_KEY, []),
            example=example,
            contents=contents,
            figures=figures,
            left_out=[*self._left_out, FILTERED_MAP],
            parent=self._window,
        )
        dialog.chosen.connect(self.write)
        dialog.copied.connect(self._copy)
        dialog.remembered.connect(self._remember)
        dialog.open()
        return dialog

    def _remembered(self) -> FigureChoices:
        try:
            return parse(FigureChoices, [str(word) for word in self._settings.value(CHOICES_KEY, [])])
        except (ChartError, TypeError):  # of another version
            return FigureChoices()

    def _remember(self, choices: FigureChoices, also: list[str]) -> None:
        self._settings.set(CHOICES_KEY, words(choices))
        self._settings.set(ALSO_KEY, also)

    @staticmethod
    def _names(runs: Iterable[RunRow]) -> dict[str, str]:
        """Return the number of each run -> its label for a file's name."""
        rows = [*runs]
        names = run_names([row.short_name for row in rows], FigureChoices(names="seed"))
        return {str(row.id): names.get(row.short_name, row.short_name) for row in rows}

    def write(self, command: list[str], file: Path) -> None:
        self._settings.set(FOLDER_KEY, str(file.parent))
        if command[0] == "bundle":
            self.write_bundle(self._figures, command, file)
        else:
            self._show_progress(self.exporter.start(command, file), 0.0, "Rendering the figure")

    def ask_bundle(self, views: Sequence[View], runs: Sequence[int], rows: Sequence[RunRow] = ()) -> None:
        """Ask for a file and the figures' looks, then write the evidence bundle of these runs, A and B first.

        It holds the usual figures, and what the views show now, all of A and B; curves and the page are `curve_runs`.
        """
        if not runs:
            self.banner.show_message("Select a run to export.", _NEXT, tone="info")
            return
        commands = drawings(views)
        experiment = _experiment(runs, rows)
        # The page compares what has ended.
        ended = {row.id for row in rows if row.status == "finished"}
        drawn = [run for run in curve_runs(commands, runs, rows) if run in {*runs} | ended]
        figures = with_usual(commands, runs[:2], drawn)
        figures += [["export", "experiment-verdict", "--experiment", experiment]] if experiment else []
        selected = ["--runs", *map(str, runs)]
        # Many names would be cut; that of their experiment says which runs they are.
        named = ["--runs", experiment] if experiment and len(runs) > 2 else selected
        stem = file_stem(["evidence", *named], self._names(rows))
        command = ["bundle", "--runs", *map(str, drawn)]
        example = ["export", "similarity", "--runs", *map(str, runs[:2])]
        names = figure_names(figures)
        filters = "; ".join(filter(None, (view.filter_words for view in views)))
        names = {kind: f"Map, {filters}" if kind == FILTERED_MAP else name for kind, name in names.items()}
        dialog = self._open("evidence bundle", BUNDLES, lambda _suffix: command, stem, example, CONTENTS, names)
        dialog.finished.connect(lambda _result: setattr(self, "_left_out", dialog.unwanted))
        for context in [view.context for view in views[:1] if rows]:
            show = partial(_show_problems, dialog, names)
            context.background.run(dialog, figure_problems, context.workspace, figures, done=show)
        self._figures = figures

    def write_bundle(self, figures: Sequence[Sequence[str]], command: list[str], file: Path) -> None:
        """Write the bundle to this file or new folder, with these figures or the default ones."""
        if figures:
            handle, name = tempfile.mkstemp(prefix="figures-", suffix=".json")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump([list(arguments) for arguments in figures], out)
            self.bundles[file] = Path(name)
            command = [*command, "--figures", name]
        self._show_progress(self.exporter.start(command, file), 0.0, "Starting")

    def copy(self, view: View) -> None:
        """Copy the view's `trainer` command to the clipboard."""
        command = view.command()
        if command is None:
            self.banner.show_message(_NOTHING, _NEXT, tone="info")
            return
        self._copy(command)

    def _copy(self, command: Sequence[str]) -> None:
        line = shell_command(command, self._folder)
        QGuiApplication.clipboard().setText(line)
        self.banner.show_message("Copied the command to the clipboard.", tone="good")

    def _show_progress(self, export: Export, share: float, note: str) -> None:
        if export is self.exporter.running[-1]:
            self.writing.note.set_details(f"{export.file.name}: {note}")
            self.writing.show_progress(share, f"Exporting {export.file.suffix[1:].upper() or 'folder'}")

    def _cancelled(self, export: Export) -> None:
        self._forget(export)
        self.banner.show_message(f"{export.file.name} was cancelled.", "Nothing was written.", tone="info")

    def _forget(self, export: Export) -> None:
        """Show the progress of what still runs, and delete the list of figures written for the command."""
        self.writing.end()
        for other in self.exporter.running[-1:]:
            self._show_progress(other, 0.0, "")
        figures = self.bundles.pop(export.file, None)
        if figures is not None:
            confined.remove(figures.parent, figures.name)

    def _done(self, export: Export) -> None:
        self._forget(export)
        folder = QUrl.fromLocalFile(str(export.file.parent))
        problems, count = undrawn(export.file) if export.command[0] == "bundle" else ({}, 0)
        named = {_name_of(kind): reason for kind, reason in problems.items()}
        self.banner.show_message(
            f"Saved {export.file.name}.",
            left_out_words(named, count) or str(export.file.parent),
            tone="warn" if named else "good",
            action=("Open folder", lambda: QDesktopServices.openUrl(folder)),
        )

    def _failed(self, export: Export, reason: str) -> None:
        self._forget(export)
        line = shell_command([*export.command, "--out", str(export.file)], self._folder)
        self.banner.show_message(
            f"{export.file.name} could not be exported.", reason, details=f"{line}\n\n{reason}", tone="bad"
        )


def drawings(views: Iterable[View]) -> list[list[str]]:
    """Return the commands that draw what the views show now; an empty view has none."""
    commands = [view.command() for view in views]
    return [command for command in commands if command and command[0] in DRAWING]


def figure_names(figures: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return what these figures draw -> what the window calls it."""
    return {kind: _name_of(kind) for kind in map(figure_kind, figures)}


def exported_name(command: Sequence[str], title: str) -> str:
    """Return what the dialog says that a command draws: the chart of a view of this title, else the view."""
    return _name_of(figure_kind(_whole_map(command))).removeprefix(f"{title}: ") if command[0] in DRAWING else title


def _name_of(kind: str) -> str:
    """Return what the window calls a figure: its view, and its chart there."""
    labels = {entry.name: entry.label for entry in VIEWS}
    view = next((view for view, charts in registry.BUILT_IN.items() if kind in charts), "")
    if kind in labels or view not in labels:
        return labels.get(kind, kind.replace("-", " ").capitalize())
    return f"{labels[view]}: {registry.load(kind).label}"


def with_usual(commands: Iterable[Sequence[str]], sides: Sequence[int], learned: Sequence[int] = ()) -> list[list[str]]:
    """Return the usual figures of A and B, each as it is shown now if it is, and then what else is shown of runs.

    A view that is hidden still names the runs that it showed last: its figure is drawn of A and B.

    Args:
        commands: Of what the views show.
        sides: Ids of A and B.
        learned: Ids of the runs whose curves are drawn; A and B where it is empty.
    """
    of_runs = [list(command) for command in commands if "--runs" in command or command[0] != "export"]
    command_of_kind = {command[1]: _whole_map(command) for command in of_runs if command[0] == "export"}
    usual = [command_of_kind.get(kind, ["export", kind, "--runs"]) for kind in USUAL]
    drawn = [*usual, *(command for command in of_runs if command not in usual)]
    figures = [of_these_runs(each, learned or sides if figure_kind(each) == "curves" else sides) for each in drawn]
    return [each for index, each in enumerate(figures) if each not in figures[:index]]


def _groups(command: Sequence[str]) -> list[list[str]]:
    """Return the words before the first option of a command, and then each option with its words."""
    starts = [index for index, word in enumerate(command) if word.startswith("--")]
    return [[*command[a:b]] for a, b in pairwise([0, *starts, len(command)])]


def _whole_map(command: Sequence[str]) -> list[str]:
    """Return a drawing command; of a map without its filters, which were set for another question."""
    return [word for group in _groups(command) if group[0] not in MAP_FILTERS for word in group]


def of_these_runs(command: Sequence[str], runs: Sequence[int]) -> list[str]:
    """Return a drawing command for these runs; steps and data that were chosen for others are left out."""
    head, *groups = _groups(command)
    positional = head[0] == "saliency"  # names its runs without an option
    drawn = [*head[1:]] if positional else next(([*group[1:]] for group in groups if group[0] == "--runs"), None)
    ids = [*map(str, runs)]
    is_usual = head[0] == "export" and figure_kind(command) in USUAL
    if drawn is None or drawn == ids or (not is_usual and {*drawn} <= {*ids}):
        return list(command)
    if not {*drawn} <= {*ids}:
        groups = [_of_catalog(group) if group[0] == "--metrics" else group for group in groups]
        groups = [group for group in groups if group and group[0] not in MAP_FILTERS]
    rest = [word for group in groups if group[0] not in _OF_RUNS for word in group]
    return [head[0], *ids, *rest] if positional else [*head, "--runs", *(ids if is_usual else ids[: len(drawn)]), *rest]


def _of_catalog(group: Sequence[str]) -> list[str]:
    """Return an option with the metrics of the catalog alone: names of other programs are of runs that are left out."""
    names = [name for name in group[1:] if metric(name).label != name]
    return [group[0], *names] if names else []


def curve_runs(commands: Iterable[Sequence[str]], runs: Sequence[int], rows: Sequence[RunRow]) -> list[int]:
    """Return the runs whose curves a bundle of these runs holds, A and B first.

    They are those of their experiment whose curves Runs draws with them, by the eyes in its list, or all of it.
    """
    drawn = next((command for command in commands if command[:2] == ["export", "curves"]), [])
    ids = takewhile(str.isdecimal, drawn[drawn.index("--runs") + 1 :]) if "--runs" in drawn else ()
    more = [*map(int, ids)]
    experiment = _experiment(runs, rows)
    siblings = [row.id for row in rows if experiment and row.experiment == experiment and row.deleted_at is None]
    more = more if {*runs} <= {*more} else siblings
    return [*dict.fromkeys([*runs, *(run for run in more if not siblings or run in siblings)])]


def _experiment(runs: Sequence[int], rows: Sequence[RunRow]) -> str:
    """Return the name of the experiment that all these runs are of; empty where they are of several, or of none."""
    experiments = {row.experiment for row in rows if row.id in runs}
    return experiments.pop() if len(experiments) == 1 else ""


def figure_problems(workspace: Workspace, figures: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return the kind of each figure that lacks a snapshot -> why it will be left out. For a thread."""
    from trainer.charts.class_task import ClassWords, class_words
    from trainer.charts.opened_snapshot import open_target
    from trainer.charts.spec import Request, targets_of
    from trainer.errors import UserError

    problems: dict[str, str] = {}
    for command in figures:
        if command[0] != "export" or figure_kind(command) == "curves" or "--runs" not in command:
            continue
        ids = [*takewhile(str.isdecimal, command[command.index("--runs") + 1 :])]
        data = dict(pairwise(command))
        kind = figure_kind(command)
        is_chart = any(kind in charts for charts in registry.BUILT_IN.values())
        if (
            is_chart
            and issubclass(registry.load(kind).settings, ClassWords)
            and not {"--suite", "--labels"} & {*command}
        ):
            try:
                class_words(workspace, ids[0])
            except UserError as problem:
                problems[kind] = str(problem)
                continue
        request, reasons = Request(targets_of([*map(int, ids)]), data.get("--dataset"), data.get("--split")), []
        for target in request.targets:
            try:
                open_target(workspace, target, request)
            except UserError as problem:
                reasons.append(str(problem))
        # A chart is drawn of the runs that have it; the map of all.
        if reasons and (len(reasons) == len(ids) or kind in ("map", FILTERED_MAP)):
            problems[kind] = reasons[0]
    return problems


def left_out_words(problems: Mapping[str, str], count: int = 0) -> str:
    """Return how many of `count` figures there are, and of each that is left out why; empty if there are all."""
    from trainer.charts.class_task import NAME_LABELS

    # One reason is often that of all.
    names: dict[str, list[str]] = {}
    for name, reason in problems.items():
        names.setdefault(reason.rstrip(".").replace(NAME_LABELS, "Choose labels in Classify"), []).append(name)
    reasons = [f"{', '.join(each)} left out: {reason}." for reason, each in names.items()]
    counted = [f"{count - len(problems)} of {count} figures."] if count and problems else []
    return " ".join([*counted, *reasons])


def _show_problems(dialog: ExportDialog, names: Mapping[str, str], problems: Mapping[str, str]) -> None:
    """Say before the export which figures it will lack."""
    if problems and shiboken6.isValid(dialog):
        text = left_out_words({names[kind]: reason for kind, reason in problems.items()})
        dialog.contents.setText(f"{text}\n{CONTENTS}")
        dialog.contents.setToolTip(text)
        for kind, reason in problems.items():
            dialog.refuse_part(kind, reason)
