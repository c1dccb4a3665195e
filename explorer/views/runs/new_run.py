"""The New run dialog: a preset, then any field of the configuration, validated while typing."""

from __future__ import annotations

import csv
import dataclasses
import errno
import os
from collections.abc import Callable, Collection
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QSignalBlocker, QTimer, Signal, SignalInstance
from PySide6.QtGui import QGuiApplication, QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QInputDialog,
    QLineEdit,
    QPushButton,
    QWidget,
)

from explorer import theme
from explorer.event_loop.background import Background
from explorer.views.runs.new_run_foot import NewRunFoot, cost_words
from explorer.views.runs.seeds_box import SeedsBox
from explorer.views.runs.view_strip import ViewStrip
from explorer.views.runs.where import WhereRow
from explorer.widgets import layouts
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.form import EDITOR_WIDTH, LABEL_WIDTH, Browse, Form
from explorer.widgets.help_panel import HelpPanel
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox
from trainer import config
from trainer.analysis.quantities import about
from trainer.config.data import not_a_folder
from trainer.config.objective_help import help_of
from trainer.config.presets import remove_preset, save_preset, user_presets
from trainer.config.suited_optimizer import suited_optimizer
from trainer.format_detection import form_of
from trainer.messages import CheckRanks, Failure, MeasureRun, RankDifference, RunCost
from trainer.places.bindings import Binding
from trainer.scheduling.paces import Pace, estimated_s, estimated_steps, pace_like
from trainer.untrusted import files as untrusted_files
from trainer.untrusted import shell
from trainer.untrusted.texts import open_text

if TYPE_CHECKING:
    from explorer.model_client.client import ModelClient
    from trainer.store.experiments import ExperimentRow

TITLES: Final[dict[str, str]] = {
    "data": "Data",
    "model": "Model",
    "objective": "Objective",
    "optimizer": "Optimizer",
    "tuning": "Fine-tuning",
    "watching": "Logging",
}
assert list(TITLES) == list(config.SECTIONS), "a section of the configuration without a title"

FOLDED: Final = frozenset({"model", "tuning", "watching"})
"""Sections that start folded: the preset's choices rarely need a change."""

FIRST_SECTIONS: Final = ("objective", "data", "optimizer")
"""What one changes from run to run: seen without scrolling in a small window."""

BROWSE: Final[dict[type, dict[str, Browse]]] = {
    config.Folder: {"path": "folder", "heldout_path": "folder"},
    config.ClassFolder: {"path": "folder", "heldout_path": "folder"},
    config.Table: {"path": "file", "heldout_path": "file"},
    config.Shards: {"path": "folder", "heldout_path": "folder"},
    config.Named: {"root": "folder"},
    config.OpenClip: {"name": "file", "pretrained": "file"},
}


PAIR: Final = "CLIP and CLOOB"
MOST_COUNTED: Final = 200_000
MOST_READ: Final = 1 << 30
"""Bytes of a table whose rows are counted."""
_LONGEST_LINE: Final = 4 << 20
HIGH_PX: Final = 776
"""As much as a window of 800 pixels holds."""
CHECK_MS: Final = 120


class NewRun(QDialog):
    """A dialog that describes a run. Enter starts it if valid, Esc closes."""

    chosen = Signal(object, str)  # The valid configuration and the name of the preset it came from, to be started now.
    queued = Signal(object, str)  # The same, to be added to the queue.
    # A configuration that CLIP and CLOOB are to train with, and with how many seeds each.
    compared = Signal(object, int)
    # Instead, pairs are to be imported: where they lie (or nothing), and the preset for them.
    import_asked = Signal(str, str)
    places_asked = Signal()  # The places of this user are to be shown.

    def __init__(
        self,
        presets: dict[str, config.Run],
        background: Background,
        *,
        start_from: config.Run | None = None,
        preset: str = "",
        data: config.Data | None = None,
        pairs: int | None = None,
        image_size: int | None = None,
        captions_repeat: bool = False,
        client: ModelClient | None = None,
        paces: Callable[[], tuple[Pace, ...]] = tuple,
        taken: Collection[str] = (),
        experiments: Callable[[], Collection[ExperimentRow]] = tuple,
        title: str = "",
        source: str = "",
        note: str = "",
        parent: QWidget | None = None,
    ) -> None:
        """Build the dialog.

        Args:
            presets: By name.
            background: Counts pairs.
            start_from: A copy of a run made from `preset`; takes the place of the preset's values.
            preset: Chosen first.
            data: Trained on whichever preset is chosen.
            pairs: Of `data` to train on, if they were counted.
            image_size: Of tiny towers, whichever preset is chosen, in pixels.
            captions_repeat: Whether two pairs of `data` to train on have one caption.
            client: Measures what the run would take; without it nothing is measured.
            paces: Returns how fast earlier runs trained, newest first; called on a thread.
            taken: Names of the runs there are.
            experiments: Returns those there are, whose names are taken too; called on a thread.
            title: Of the dialog; empty: by whether it is a copy.
            source: Name of the run whose weights `start_from` fine-tunes; where its settings come from is told then.
            note: What is said of the first values, below the preset.
        """
        super().__init__(parent, objectName="new-run", modal=True)
        self.setWindowTitle(title or ("New run" if start_from is None else "Duplicate run"))
        high = parent.window().height() - theme.AROUND if parent is not None else HIGH_PX
        layouts.resize_within_screen(self, 760, max(520, min(HIGH_PX, high)))
        self._presets, self._background, self._client = dict(presets), background, client
        self._measuring: int | None = None
        self._measured: tuple[config.Run, RunCost] | None = None
        self._compared: tuple[config.Run, str] | None = None
        self._fault = ("", None)
        self._data, self._image_size, self._captions_repeat = data, image_size, captions_repeat
        self._copied = {} if start_from is None else {preset: start_from}
        self._pairs = self._imported_pairs = pairs
        self._counted = data if pairs is not None else None
        self._missing: dict[str, config.ConfigError] = {}  # Field of the data -> why it names nothing on this computer.
        self._looks = False  # Whether that is not known yet.
        self._sections: dict[str, SectionForm] = {}
        self.help_panel: HelpPanel | None = None
        self._source, self._start_from, self._note = source, start_from, note
        self._shown = config.Run()
        self._taken = taken
        self._paces: tuple[Pace, ...] = ()
        self._experiments: tuple[str, ...] = ()
        self._suited: config.Optimizer | None = None  # As it was made to suit data that were named here.
        self._build(preset)
        self._later = QTimer(self, singleShot=True, interval=CHECK_MS, timeout=self._check)
        if start_from is not None:
            self.show_run(start_from)
        elif presets:
            self._take_preset()
        else:
            self.show_run(config.Run())
        self.section("objective").kind.setFocus()
        background.run(
            self, lambda: (paces(), experiments()), done=self._take_earlier, failed=lambda _: None, key="earlier"
        )

    def focusNextPrevChild(self, forward: bool) -> bool:
        layouts.tab_as_laid_out(self)
        return super().focusNextPrevChild(forward)

    @property
    def preset_name(self) -> str:
        """The selected preset; empty if there is none."""
        return self.preset.currentData() or ""

    @property
    def name_field(self) -> QLineEdit:
        """The editor of the run's name."""
        editor = self.top.editor("name")
        assert isinstance(editor, QLineEdit)
        return editor

    def section(self, name: str) -> SectionForm:
        return self._sections[name]

    def run(self) -> config.Run:
        """Return the run in the editors; it may be invalid."""
        sections = {name: form.value() for name, form in self._sections.items()}
        if self.section("objective").is_extra:
            sections["objective"] = config.Clip(mask_duplicates=self._captions_repeat)
        if not self.name_field.isEnabled():
            sections["name"] = self._run_name
        return dataclasses.replace(self.top.value(), **sections)

    def show_run(self, run: config.Run) -> None:
        """Fill every editor from `run`."""
        self.name_field.setEnabled(True)
        self.top.set_value(run)
        for name, form in self._sections.items():
            form.set_value(getattr(run, name))
        self._shown = run
        if run.tuning != config.Tuning():
            self.section("tuning").fold.setChecked(True)
        self._check()

    def command(self) -> list[str]:
        """Return the `trainer` arguments that start the same run."""
        if self.pair.isVisibleTo(self):
            return both_command(self.run(), self.pair.seeds.count, self.preset_name, self._presets)
        return [*fit_command(self.run(), self.preset_name, self._presets), *self.where.command()]

    def accept(self) -> None:
        """Start the run if it is valid; otherwise move to the first problem."""
        self._finish(self.chosen)

    def done(self, result: int) -> None:
        """Close the dialog and end a measurement in progress."""
        self._stop_measuring()
        super().done(result)

    def _finish(self, signal: SignalInstance) -> None:
        self._check()
        if not self.foot.start.isEnabled():
            return
        if self.pair.isVisibleTo(self):
            self.compared.emit(self.run(), self.pair.seeds.count)
        else:
            signal.emit(self.run(), self.preset_name)
        super().accept()

    # -- checking ----------------------------------------------------------------------------------------------

    def _check_later(self) -> None:
        # What was valid may not be any more: Enter must not start it in between.
        for button in (self.foot.start, self.foot.queue):
            set_refusal(button, "The settings are being checked.")
        self._later.start()

    def _check(self) -> None:
        self._later.stop()
        run = self._by_weights(self.run())
        self._count(run)
        compares = self.section("objective").is_extra
        self.both.setVisible(not compares)
        from trainer.experiments.experiment import free_name

        name = f"{PAIR.replace('and', '+')} on {config.data_name(run.data)}"
        self._show_name(free_name(name, self._experiments) if compares else "")
        is_taken = run.name in self._taken and not compares
        self.top.set_note("name", "Another run has this name: a number is added to this one's." if is_taken else "")
        self.pair.setVisible(compares)
        self.pair.seeds.propose(run, self._pairs, self._paces)
        faults = config.faults(run, self._pairs) or self._faults_here(run)
        problems = {key: str(each).replace(key, config.field_label([run], key), 1) for key, each in faults.items()}
        repairs = {key: fault.better for key, fault in faults.items() if fault.better is not None}
        self.top.set_problems(*(_of_section("", each) for each in (problems, repairs)))
        for name, form in self._sections.items():
            form.set_problems(*(_of_section(name, each) for each in (problems, repairs)))
        self.where.show_data(run.data)
        self._show_origins(run)
        reads = "The data are being checked." if self._looks and not self.where.name else ""
        self.foot.allow(next(iter(problems.values()), reads), both=compares, elsewhere=bool(self.where.name))
        self._show_foot(run, problems, repairs)

    def _show_name(self, of_experiment: str) -> None:
        """Show the name of the experiment in place of that of a run, which comes back without one."""
        field = self.name_field
        if field.isEnabled():
            self._run_name = field.text()
        name = of_experiment or self._run_name
        if field.text() != name:
            with QSignalBlocker(field):
                field.setText(name)
        field.setEnabled(not of_experiment)

    def _by_weights(self, run: config.Run) -> config.Run:
        """Return the run; once it takes pretrained weights, untouched fields of the optimizer show what suits those.

        A name that nobody typed follows objective and data.
        """
        before, self._shown = self._shown, run
        usual = self._presets.get(self.preset_name, config.Run()).optimizer
        stated = [name for name in config.FINE_TUNING if getattr(run.optimizer, name) != getattr(usual, name)]
        began = dataclasses.replace(run, model=before.model, tuning=before.tuning)
        suited = config.by_weights(began, run, stated)
        if config.continues_training(began) and not config.continues_training(run):
            ours = [name for name, value in config.FINE_TUNING.items() if getattr(run.optimizer, name) == value]
            plain = dataclasses.replace(run.optimizer, **{name: getattr(usual, name) for name in ours})
            suited = dataclasses.replace(run, optimizer=plain)
        if suited != run:
            self.section("optimizer").set_value(suited.optimizer)
        if run.name == config.named_after(before.data, before.objective.kind) and not self.name_field.isModified():
            suited = dataclasses.replace(suited, name=config.named_after(run.data, run.objective.kind))
            self.name_field.setText(suited.name)
        return suited

    def _show_origins(self, run: config.Run) -> None:
        """Say where the settings of a fine-tuning come from."""
        self.origins.setVisible(bool(self._source or self._note))
        self.origins.setText(self._note)
        if not self._source or self._start_from is None:
            return
        stated = {key for key, _, _ in config.difference(self._start_from, run)}
        origins = config.origins(run, source=self._source, stated=stated, pairs=self._pairs)
        self.origins.setText("\n".join(f"{each.label} {each.value}: {each.why}." for each in origins))

    def _faults_here(self, run: config.Run) -> dict[str, config.ConfigError]:
        """Return what this computer cannot compute, if it is the one that trains."""
        if self.where.name and self.section("objective").is_extra:
            reason = "CLIP and CLOOB are compared on this computer: choose it under Run on."
            return {"device": config.ConfigError(f"device: {reason}", field="device")}
        if self.where.name:
            reason = "it starts from weights of this workspace, which the compute target lacks: choose this computer."
            field = "tuning.start"
            if run.tuning.start_run:
                return {field: config.ConfigError(f"{field}: {reason}", field=field)}
            nodes = (self.where.binding() or Binding("")).nodes or 1
            reason = f"{run.ranks} processes cannot be shared by {nodes} nodes: set a multiple of {nodes}."
            return {"ranks": config.ConfigError(f"ranks: {reason}", field="ranks")} if run.ranks % nodes else {}
        return self._missing

    def _count(self, run: config.Run) -> None:
        """Count the pairs of the selected data off the GUI thread, if the data have changed."""
        if run.data == self._counted:
            return
        self._counted, self._pairs = run.data, None
        self._missing, self._looks = {}, bool(getattr(run.data, "path", ""))
        unread = partial(self._take_data, (None, {}))
        self._background.run(self, look_at, run.data, done=self._take_data, failed=lambda _: unread(), key="count")

    def _take_earlier(self, earlier: tuple[tuple[Pace, ...], Collection[ExperimentRow]]) -> None:
        self._paces, self._experiments = earlier[0], tuple(row.name for row in earlier[1])
        self._check()

    def _take_data(self, answer: tuple[int | None, dict[str, config.ConfigError]]) -> None:
        """Show how many pairs there are; an optimizer that is still its preset's is made to suit other data."""
        self._looks, (pairs, self._missing) = False, answer
        self._pairs = pairs
        run, usual = self.run(), self._presets.get(self.preset_name)
        is_own = self._start_from is None and usual is not None and run.data != usual.data and not run.data.is_drawn
        if usual is not None and is_own and pairs and run.optimizer in (usual.optimizer, self._suited):
            began = dataclasses.replace(run, optimizer=usual.optimizer)
            self._suited = on_data(began, run.data, None, pairs).optimizer
            self.section("optimizer").set_value(self._suited)
        self._check()

    def _show_foot(self, run: config.Run, problems: dict[str, str], repairs: dict[str, Any]) -> None:
        """Show the first problem with its fix, or how long the run will take."""
        key = next(iter(problems), "")
        self._fault = (key, repairs.get(key))
        if key:
            section, _, name = key.rpartition(".")
            form = self._sections[section].form if section else self.top
            self.foot.small.show_run(None, None)
            self.foot.show_fault(problems[key], form.repair_words(name, repairs[key]) if key in repairs else "")
            return
        nameless = dataclasses.replace(run, name="")
        cost = self._measured[1] if self._measured is not None and self._measured[0] == nameless else None
        both = self.section("objective").is_extra
        trainings = 2 * self.pair.seeds.count if both else 1
        pace = pace_like(run, self._paces)
        guessed = not run.data.is_drawn and self._pairs != self._imported_pairs
        text = cost_words(cost) if cost else estimate_words(run, self._pairs, pace, trainings, guessed=guessed)
        compared = self._compared[1] if self._compared is not None and self._compared[0] == nameless else ""
        asks = self._client is not None
        if text and asks and not cost and pace is None and run.optimizer.epochs:
            text += ". Its time is not known yet: measure three steps."
        # The pair trains CLOOB as published.
        self.foot.small.show_run(dataclasses.replace(run, objective=config.Cloob()) if both else run, self._pairs)
        can_check = asks and run.ranks > 1 and not compared
        self.foot.show_estimate(compared or text, can_measure=asks and not cost, can_check=can_check)

    def _mend(self) -> None:
        key, better = self._fault
        if key and better is not None:
            self.show_run(config.replace(self.run(), key, str(better)))

    # -- measuring ---------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Measure three real steps of the run in a separate process."""
        self._check()
        if self._client is None or not self.foot.start.isEnabled():
            return
        run = self.run()
        self.foot.show_measuring("Starting the measurement…")
        self._measuring = self._client.ask(
            MeasureRun(config=config.to_toml(dataclasses.replace(run, data=config.absolute(run.data)))),
            done=partial(self._take_cost, run),
            failed=self._not_measured,
            progress=lambda share, note: self.foot.show_measuring(f"{note or 'Measuring'}… {100 * share:.0f} %"),
            owner=self,
        )

    def _take_cost(self, run: config.Run, cost: RunCost) -> None:
        self._measuring, self._measured = None, (dataclasses.replace(run, name=""), cost)
        self.foot.end_measuring()
        self._check()

    def _compare(self) -> None:
        """Make updates by as many processes as the form says and by one, in a separate process, and compare them."""
        self._check()
        if self._client is None or not self.foot.start.isEnabled():
            return
        run = self.run()
        self.foot.show_measuring("Starting the processes that are compared…")
        self._measuring = self._client.ask(
            CheckRanks(
                config=config.to_toml(dataclasses.replace(run, data=config.absolute(run.data))), ranks=run.ranks
            ),
            done=partial(self._take_comparison, run),
            failed=self._not_measured,
            progress=lambda share, note: self.foot.show_measuring(f"{note or 'Comparing'}…"),
            owner=self,
        )

    def _take_comparison(self, run: config.Run, difference: RankDifference) -> None:
        self._measuring, self._compared = None, (dataclasses.replace(run, name=""), difference.text)
        self.foot.end_measuring()
        self._check()

    def _not_measured(self, failure: Failure) -> None:
        self._measuring = None
        self.foot.end_measuring()
        self._check()
        if failure.kind != "cancelled":
            self.foot.show_fault(f"Could not measure: {failure.words}", "")

    def _stop_measuring(self) -> None:
        number, self._measuring = self._measuring, None
        if number is not None and self._client is not None:
            self._client.cancel(number)

    # -- presets of one's own ----------------------------------------------------------------------------------

    def _save_preset(self) -> None:
        """Save the run in the editors as a preset."""
        name, typed = QInputDialog.getText(self, "Save as preset", "Name of the preset", text=self.name_field.text())
        if not typed:
            return
        try:
            save_preset(name, self.run())
        except config.ConfigError as error:
            self.foot.show_fault(str(error), "")
            return
        self._presets[name.strip()] = self.run()
        self._list_presets(name.strip())

    def _remove_preset(self) -> None:
        remove_preset(self.preset_name)
        self._presets.pop(self.preset_name, None)
        self._list_presets("")
        self._take_preset()

    def _list_presets(self, chosen: str) -> None:
        saved = user_presets()
        with QSignalBlocker(self.preset):
            self.preset.clear()
            for name, run in self._presets.items():
                yours = "yours: " if name in saved else ""
                # A copy says what it is a copy of: a preset for folders knows no folder.
                preset = run if self._data else self._copied.get(name, run)
                where = "your data" if self._data else config.data_name(preset.data)
                self.preset.addItem(f"{name}  ({yours}{preset.objective.label} on {where})", name)
            self.preset.setCurrentIndex(max(0, self.preset.findData(chosen or _first_ready(self._presets))))
        self._show_preset_buttons()

    def _show_preset_buttons(self) -> None:
        set_refusal(
            self.remove, "" if self.preset_name in user_presets() else "Only presets that you saved can be deleted."
        )

    # -- parts -------------------------------------------------------------------------------------------------

    def _build(self, preset: str) -> None:
        self.preset = StillComboBox(self)
        self.preset.setObjectName("new-run-preset")
        self.preset.setAccessibleName("Preset")
        self.preset.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.preset.setMinimumContentsLength(20)
        self.save = QPushButton("Save as preset…", self, objectName="new-run-save-preset", autoDefault=False)
        self.save.setToolTip("Save these settings as a named preset for this user")
        self.save.clicked.connect(self._save_preset)
        self.remove = QPushButton("Remove", self, objectName="new-run-remove-preset", autoDefault=False)
        self.remove.setToolTip("Delete a preset that you saved")
        self.remove.clicked.connect(self._remove_preset)
        self._list_presets(preset)
        self.preset.activated.connect(self._take_preset)
        inside = QWidget()
        self.origins = layouts.text(role="small", name="new-run-origins")
        self.origins.hide()
        column = layouts.column(self._preset_row(), self.origins, gap=theme.BETWEEN, margins=theme.AROUND, of=inside)
        # What is compared comes first; where it is computed is seldom another than here.
        self.top = Form(config.Run, skip=frozenset(config.SECTIONS), parent=inside)
        self.top.changed.connect(self._check_later)
        for name in (*FIRST_SECTIONS, *(name for name in config.SECTIONS if name not in FIRST_SECTIONS)):
            layouts.add(column, layouts.hairline(), self._make_section(name, inside))
            if name == FIRST_SECTIONS[0]:
                layouts.add(column, layouts.hairline(), self.top)
        self.where = WhereRow(inside)
        self.where.changed.connect(self._check_later)
        self.where.manage_asked.connect(self.places_asked)
        layouts.add(column, layouts.hairline(), self.where)
        column.addStretch(1)
        self.foot = self._make_foot()
        self.start, self.estimate = self.foot.start, self.foot.summary
        layouts.column((layouts.scroll(inside, sideways=True), 1), layouts.hairline(), self.foot, gap=0, of=self)

    def _make_section(self, name: str, parent: QWidget) -> SectionForm:
        section = self._sections[name] = SectionForm(name, folded=name in FOLDED, parent=parent)
        section.changed.connect(self._check_later)
        if name == "data":
            tip = "Check a folder, table or tar of pairs before training"
            section.add_button(self._section_button("Import\u2026", "new-run-import", tip, self._import))
        elif name == "objective":
            section.add_extra(PAIR, config.Clip)
            self.both = QPushButton(PAIR, self, objectName="new-run-both", autoDefault=False)
            self.both.setToolTip("Train both, with several seeds each, and compare them on Home")
            self.both.clicked.connect(lambda: section.kind.setCurrentIndex(0))
            section.add_button(self.both, right=False)
            tip = "What this objective minimizes, its paper and its caveats"
            section.add_button(self._section_button("Method", "new-run-method", tip, self._show_help))
            self.pair = PairRow(section)
            self.pair.seeds.edited.connect(self._check_later)
            section.show_below(self.pair)
            self.views = ViewStrip(self._background, section)
            section.show_below(self.views)
            section.changed.connect(lambda: self.views.show_objective(section.value()))
        return section

    def _preset_row(self) -> FlowRow:
        label, row = layouts.text("Preset", buddy=self.preset), FlowRow()
        label.setFixedWidth(LABEL_WIDTH)
        for part in (label, self.preset, self.save, self.remove):
            row.add(part, gap=theme.BETWEEN, stretch=part is self.preset)
        return row

    def _make_foot(self) -> NewRunFoot:
        foot = NewRunFoot(self)
        foot.copy_asked.connect(self._copy)
        foot.cancelled.connect(self.reject)
        foot.repair_asked.connect(self._mend)
        foot.small.enlarged.connect(lambda run: self.section("optimizer").set_value(run.optimizer))
        foot.measure_asked.connect(self._measure)
        foot.check_asked.connect(self._compare)
        foot.stop_asked.connect(self._stop_measuring)
        foot.queue_asked.connect(lambda: self._finish(self.queued))
        foot.start_asked.connect(self.accept)
        return foot

    def _show_help(self) -> None:
        """Explain the chosen objective."""
        objective = self.section("objective").chosen_kind
        if self.help_panel is None:
            self.help_panel = HelpPanel(self)
        self.help_panel.show_message(objective.label, *help_of(objective))

    def _section_button(self, label: str, name: str, tip: str, act: Callable[[], object]) -> QPushButton:
        return QPushButton(label, self, objectName=name, toolTip=tip, autoDefault=False, clicked=lambda: act())

    def _import(self) -> None:
        path = getattr(self.section("data").value(), "path", "")
        self.reject()
        self.import_asked.emit(str(path).strip(), self.preset_name)

    def _take_preset(self) -> None:
        """Show the preset's values; a name typed by the user stays."""
        self._show_preset_buttons()
        chosen = on_data(
            self._presets[self.preset_name],
            self._data,
            self._image_size,
            self._imported_pairs,
            captions_repeat=self._captions_repeat,
        )
        typed = self.name_field.text() if self.name_field.isModified() else chosen.name
        self.show_run(dataclasses.replace(chosen, name=typed))
        self.name_field.setModified(typed != chosen.name)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(shell.join(["trainer", *self.command()]))


class SectionForm(QWidget):
    """One collapsible section of the configuration: its type, and the fields of that type.

    What is folded is made when somebody looks: half of the fields, and of the time until the sheet is there.
    """

    changed = Signal()  # `value()` may be another now.

    def __init__(self, name: str, *, folded: bool, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self._forms: dict[type, Form] = {}
        self._values: dict[type, Any] = {}
        self._kinds = config.SECTIONS[name]
        self.kind = StillComboBox(self)
        self.kind.setObjectName(f"{name}-kind")
        self.kind.setAccessibleName(f"Kind of {TITLES[name].lower()}")
        self.kind.setMinimumWidth(EDITOR_WIDTH)
        self.kind.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        for family, kinds in groupby(self._kinds, lambda kind: getattr(kind, "family", "")):
            if family:
                self._add_heading(family)
            for kind in kinds:
                self.kind.addItem(getattr(kind, "label", kind.__name__), kind)
        self._show_entry(self._kinds[0])
        self.kind.setVisible(len(self._kinds) > 1)
        self.kind.currentIndexChanged.connect(self._show_kind)
        self._inside = QWidget(self)
        self._column = layouts.column(gap=None, of=self._inside)
        layouts.column(self._head(), self._inside, of=self)
        self._inside.setVisible(not folded)
        with QSignalBlocker(self.fold):
            self.fold.setChecked(not folded)
        self._show_kind()

    @property
    def chosen_kind(self) -> type[Any]:
        return self.kind.currentData() or self._extra_kind

    @property
    def is_extra(self) -> bool:
        """Whether the entry of `add_extra` is chosen."""
        return self.kind.currentData() is None

    def add_extra(self, label: str, kind: type) -> None:
        """Add a first entry that stands for more than one type, with the values of `kind` and none of its fields."""
        self._extra_kind = kind
        with QSignalBlocker(self.kind):
            self.kind.insertItem(0, label)

    def _add_heading(self, title: str) -> None:
        self.kind.addItem(title)
        model = self.kind.model()
        assert isinstance(model, QStandardItemModel)
        heading = model.item(self.kind.count() - 1)
        heading.setEnabled(False)
        heading.setFont(theme.pixel_font(theme.SMALL_PX))

    def _show_entry(self, kind: type) -> None:
        # Not by `findData`: Qt compares classes as it likes.
        entries = [self.kind.itemData(index) for index in range(self.kind.count())]
        self.kind.setCurrentIndex(entries.index(kind))

    @property
    def form(self) -> Form:
        """The form of the current type, created on first use."""
        kind = self.chosen_kind
        if kind not in self._forms:
            made = self._forms[kind] = Form(
                kind, browse=BROWSE.get(kind), unused=config.unused_fields, parent=self._inside
            )
            if kind in self._values:
                made.set_value(self._values[kind])
            made.changed.connect(self.changed)
            self._column.insertWidget(0, made)
        return self._forms[kind]

    def value(self) -> Any:
        """Return the section in the editors."""
        kind = self.chosen_kind
        return self._forms[kind].value() if kind in self._forms else self._values.get(kind, kind())

    def set_value(self, section: Any) -> None:
        """Show `section`, selecting its type."""
        kind = type(section)
        self._values[kind] = section
        self._show_entry(kind)
        if kind in self._forms:
            self._forms[kind].set_value(section)
        else:
            self.changed.emit()

    def set_problems(self, problems: dict[str, str], repairs: dict[str, Any]) -> None:
        """Show the problems under their fields with buttons that fix them, expanding the section."""
        if problems:
            self.fold.setChecked(True)
        if self.chosen_kind in self._forms:
            self.form.set_problems(problems, repairs)

    def show_below(self, widget: QWidget) -> None:
        """Place a widget below the fields; it is folded with them."""
        self._column.addWidget(widget)

    def add_button(self, button: QPushButton, *, right: bool = True) -> None:
        """Add a button at the right end of the section's header, or next to the type."""
        self._head_row.add(button, gap=theme.BETWEEN, right=right)

    def _head(self) -> FlowRow:
        self.fold = DisclosureButton(TITLES[self.name], strong=True, parent=self)
        self.fold.setObjectName(f"{self.name}-fold")
        self.fold.setAccessibleName(f"Fields of {TITLES[self.name]}")
        self.fold.setFixedWidth(LABEL_WIDTH)
        self.fold.toggled.connect(self._unfold)
        self._head_row = FlowRow()
        for part in (self.fold, self.kind):
            self._head_row.add(part, gap=theme.BETWEEN)
        return self._head_row

    def _show_kind(self) -> None:
        if self.fold.isChecked():
            self.form  # noqa: B018  (made where it is seen)
        self._show_form()
        self.changed.emit()

    def _unfold(self, unfolded: bool) -> None:
        if unfolded:
            self.form  # noqa: B018
            self._show_form()
        self._inside.setVisible(unfolded)

    def _show_form(self) -> None:
        current = None if self.is_extra else self._forms.get(self.chosen_kind)
        for form in self._forms.values():
            form.setVisible(form is current)


class PairRow(QWidget):
    """What the entry that trains CLIP and CLOOB does, and with how many seeds."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="new-run-pair")
        self.seeds = SeedsBox("new-run-seeds")
        label = layouts.text("Seeds of each", buddy=self.seeds)
        label.setFixedWidth(LABEL_WIDTH)
        self.seeds.setFixedWidth(EDITOR_WIDTH)
        text = "CLIP and CLOOB train alike, in turn; Home compares them. 3 seeds or more give a verdict."
        layouts.row(label, self.seeds, (layouts.text(text, "small", wrap=True), 1), gap=theme.BETWEEN, of=self)


def _of_section(section: str, entries: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of `entries` for a section's fields by field name; an empty section is the run itself."""
    return {key.rpartition(".")[2]: value for key, value in entries.items() if key.rpartition(".")[0] == section}


def both_command(run: config.Run, seeds: int, preset: str, presets: dict[str, config.Run]) -> list[str]:
    """Return the `trainer` arguments that start the same experiment."""
    return ["experiment", "both", *fit_command(run, preset, presets)[1:], "--seeds", f"{seeds}"]


def fit_command(run: config.Run, preset: str, presets: dict[str, config.Run]) -> list[str]:
    """Return the `trainer` arguments that fit `run`: its preset, and `--set` for every field that differs."""
    now = presets.get(preset, config.Run())
    arguments = ["fit", *(["--preset", preset] if preset in presets else [])]
    for name in config.SECTIONS:
        section = getattr(run, name)
        if type(section) is not type(getattr(now, name)):
            now = dataclasses.replace(now, **{name: type(section)()})
            arguments += ["--set", f"{name}={section.kind}"]
    if config.continues_training(run):
        suited = config.by_weights(now, dataclasses.replace(now, model=run.model, tuning=run.tuning), ())
        now = dataclasses.replace(now, optimizer=suited.optimizer)
    for key, _, value in config.difference(now, run):
        arguments += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    return arguments


def on_data(
    run: config.Run,
    data: config.Data | None,
    image_size: int | None,
    pairs: int | None = None,
    *,
    captions_repeat: bool = False,
) -> config.Run:
    """Return a preset's run trained on `data` at `image_size`, if given, and named after both.

    Batch, epochs and warm-up suit the `pairs` that there are to train on; equal captions are no wrong answers of each
    other, as for `trainer fit --data`.
    """
    if data is None:
        return run
    model, optimizer = run.model, run.optimizer
    if image_size and isinstance(model, config.TinyTowers):
        model = dataclasses.replace(model, image_size=image_size)
    if pairs and pairs >= 2:
        optimizer = suited_optimizer(optimizer, pairs, ("epochs",) if config.continues_training(run) else ())
    if captions_repeat and hasattr(run.objective, "mask_duplicates"):
        run = config.replace(run, "objective.mask_duplicates", "true")
    name = config.named_after(data, run.objective.kind)
    return dataclasses.replace(run, data=data, model=model, optimizer=optimizer, name=name)


def estimate_words(
    run: config.Run, pairs: int | None, pace: Pace | None = None, trainings: int = 1, *, guessed: bool = False
) -> str:
    """Return what is known about a run before it is measured.

    Args:
        pairs: To train on; None where they are not counted.
        pace: Of an earlier run like it.
        trainings: How many runs are trained with it.
        guessed: Whether the pairs were not counted as the training does, which holds equal pictures together.
    """
    if pairs is None:
        return ""
    if not run.optimizer.epochs:
        return "Evaluate only, no training: 0 epochs"
    steps = estimated_steps(run, pairs)
    text = f"{steps:,} steps ({steps // run.optimizer.epochs:,} per epoch, {'about ' * guessed}{pairs:,} pairs)"
    text = f"{trainings} × {text}" if trainings > 1 else text
    if pace is None or not steps:
        return text
    label = pace.label.replace(" ", "\u00a0")  # a name is not broken
    return f"{text}, about {about(trainings * estimated_s(run, pairs, pace))} at the speed of {label}"


def _first_ready(presets: dict[str, config.Run]) -> str:
    """Return the first preset that could start as is, without a path to set or data to download."""
    in_order = sorted(presets, key=lambda name: not presets[name].data.is_drawn)
    return next((name for name in in_order if not config.problems(presets[name])), "")


def look_at(data: config.Data) -> tuple[int | None, dict[str, config.ConfigError]]:
    """Return the number of training pairs as `count_pairs`, and the fields that name no folder or table here."""
    missing = {}
    for field in ("data.path", "data.heldout_path"):
        stated = str(getattr(data, field.removeprefix("data."), "")).strip()
        path, sentence = untrusted_files.expanded(stated), ""
        if stated and type(data).holds and not path.is_dir():
            sentence = not_a_folder(type(data), path)
        elif stated and isinstance(data, config.Table) and not path.exists():
            sentence = f"{path} cannot be read: {os.strerror(errno.ENOENT)}. Choose another table."
        if sentence:
            missing[field] = config.ConfigError(sentence, field=field)
    return None if missing else count_pairs(data), missing


def count_pairs(data: config.Data) -> int | None:
    """Estimate the number of training pairs from captions or lines, without opening images; None if unknown."""
    if isinstance(data, config.Scenes):
        return round(data.train_share * data.train_pairs)
    if not isinstance(data, config.Folder | config.Table):
        return None
    path = Path(data.path).expanduser()
    share = data.train_share * (1.0 if data.heldout_path else 1.0 - data.heldout_share)
    if not data.path.strip() or not path.exists():
        return None
    counted = _captions_below(path) if isinstance(data, config.Folder) else _lines_of(path)
    return None if counted is None else int(counted * share)


def _captions_below(folder: Path) -> int:
    count = 0
    for _, _, files in os.walk(folder):
        count += sum(name.endswith(".txt") for name in files)
        if count >= MOST_COUNTED:
            break
    return count


def _lines_of(table: Path) -> int | None:
    """Return the rows of a text table; None if counting takes long or the file is not text."""
    try:
        if form_of(table) in ("json", "parquet") or table.stat().st_size > MOST_READ:
            return None
        with open_text(table) as file:
            # No line need have an end.
            parts = iter(partial(file.readline, _LONGEST_LINE), b"")
            rows = sum(1 for _ in csv.reader(part.decode("utf-8", "replace") for part in parts))
            return max(0, rows - (form_of(table) == "cells"))
    except (OSError, csv.Error):
        return None
