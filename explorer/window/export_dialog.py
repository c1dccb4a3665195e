"""The dialog that exports a figure: what it holds, how large it is, and a preview of it at true proportion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QColor, QKeyEvent, QKeySequence, QPainter, QPaintEvent, QPen, QPixmap, QShortcut
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialog,
    QFileDialog,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from explorer import theme
from explorer.render_qt.controls import Check, Choose, Control
from explorer.widgets import layouts
from explorer.widgets.refusal import set_refusal
from explorer.window.figure_previews import FigurePreviews
from trainer.charts.figure_choices import FigureChoices
from trainer.charts.settings import options
from trainer.config.fields import fields_of
from trainer.distribution.bundle_files import DRAWING, takes_choices

WIDTH, HEIGHT = 968, 600
FORM_PX: Final = 364
LABEL_PX: Final = 80
PANELS_PX: Final = 104
"""Of the list of panels: four short names, and one that is cut shows that it scrolls."""
PER_LINE: Final = (4, 3)
BOX_PX: Final = 36
"""Of a check box beside its text, and the gap behind it."""
PX_PER_MM: Final = 6.0
"""Of a figure that has room: 89 mm are seen as 534 pixels."""
PATIENCE_MS: Final = 1_000
"""After which a preview that is not there yet says what it waits for."""
FIGURES: Final = ("pdf", "svg", "png")
"""Suffixes of pictures of the figure; all others hold numbers, tables or films."""
FILMS: Final = ("gif", "mp4")
"""Suffixes of films; the preview is the last frame."""
ALSO: Final = (*FIGURES, "csv")
"""Suffixes of what can be written beside a figure."""
FOLDER: Final = "folder"
"""In place of a suffix: a new folder."""
_ALL_PARTS: Final = "{} holds everything that the view shows."
_FIXED: Final = "The layout of this figure is fixed."
_FILM: Final = "Plays all snapshots of the view; fixed layout."


class FigurePaper(QWidget):
    """A figure on paper, as large as there is room and in true proportion."""

    def __init__(self) -> None:
        super().__init__(accessibleName="Preview of the figure")
        self.picture, self._size_mm = QPixmap(), (0.0, 0.0)
        self.setMinimumSize(160, 160)

    def show_figure(self, file: str, size_mm: tuple[float, float]) -> None:
        self.picture, self._size_mm = QPixmap(file), size_mm
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.picture.isNull():
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        width, height = self._size_mm if min(self._size_mm) > 0 else self.picture.size().toTuple()
        scale = min(PX_PER_MM, (self.width() - 2) / width, (self.height() - 2) / height)
        paper = QRectF(0, 0, round(width * scale), round(height * scale))
        paper.moveCenter(QRectF(self.rect()).center())
        # Smooth only when it is made smaller beforehand: one step of the painter drops thin lines.
        pixels = (paper.size() * self.devicePixelRatioF()).toSize()
        smooth = Qt.TransformationMode.SmoothTransformation
        picture = self.picture.scaled(pixels, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)
        painter.fillRect(paper, QColor("white"))
        painter.drawPixmap(paper, picture, QRectF(picture.rect()))
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawRect(paper)


class ExportDialog(QDialog):
    """Asks how a figure is exported. Ctrl+Enter exports, Esc cancels."""

    chosen = Signal(object, object)  # The arguments of `trainer` but those of the main file, and that file.
    copied = Signal(object)  # The arguments of `trainer` with the names of all files.
    remembered = Signal(object, object)  # The choices and the further suffixes that the next dialog begins with.

    def __init__(
        self,
        title: str,
        formats: Sequence[tuple[str, str]],
        command_for: Callable[[str], Sequence[str] | None],
        file: Path,
        previews: FigurePreviews,
        *,
        choices: FigureChoices | None = None,
        also: Sequence[str] = (),
        example: Sequence[str] = (),
        contents: str = "",
        figures: Mapping[str, str] | None = None,
        left_out: Collection[str] = (),
        parent: QWidget | None = None,
    ) -> None:
        """Build the dialog.

        Args:
            title: What is exported.
            formats: Suffix and label of each; the first is chosen.
            command_for: Returns the command that writes a suffix.
            file: Where to, without its suffix.
            previews: Draws; closed with the dialog.
            also: Suffixes of what is written beside a figure: other formats, or its numbers.
            example: The figure that stands for all, where several are exported: none of its parts is offered.
            contents: What is exported besides figures, a line each, where it is more than one figure.
            figures: Names and titles of the figures of several, each of which may be left out.
            left_out: Names of those that are left out at first.
            parent: The window.
        """
        super().__init__(parent, objectName="exportDialog", windowTitle=f"Export {title}", modal=True)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._command_for, self._file, self._previews = command_for, file, previews
        self._suffixes, self._example = [suffix for suffix, _ in formats], list(example)
        self.contents = layouts.text(contents, "small", name="export-contents", wrap=True)
        previews.setParent(self)
        controls = {field.name: self._control(field) for field in fields_of(FigureChoices) if field.control}
        self.controls = {name: control for name, control in controls.items() if control is not None}
        self._first = choices or FigureChoices()
        self.parts: dict[str, QCheckBox] = {}
        self._usual_parts: frozenset[str] = frozenset()
        self.format_buttons = self._formats(formats)
        self.also = {suffix: QCheckBox(suffix.upper(), checked=suffix in also) for suffix in ALSO}
        for suffix, box in self.also.items():
            box.setObjectName(f"export-also-{suffix}")
            box.setAccessibleName(f"Also as {suffix.upper()}")
        self.busy_bar = QProgressBar(accessibleName="The preview is computed", textVisible=False, maximum=0)
        policy = self.busy_bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the figure keeps its size when it comes
        self.busy_bar.setSizePolicy(policy)
        self.busy_bar.hide()
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE_MS, timeout=self._show_wait)
        self._drew = False
        self.sheet, self.size_note = FigurePaper(), layouts.text(role="small", name="export-size", wrap=True)
        self.size_note.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.target = layouts.elided(role="small")
        self._lay_out()
        for name, title in (figures or {}).items():
            self._add_part(name, title, checked=name not in left_out)
        for name, control in self.controls.items():
            control.show_value(getattr(self._first, name))
            control.changed.connect(self._ask)
        self._connect(previews)
        self._show_format()
        layouts.resize_within_screen(self, WIDTH, HEIGHT)

    # -- what is chosen ----------------------------------------------------------------------------------------

    @property
    def suffix(self) -> str:
        """The ending of the main file."""
        return next(suffix for suffix, button in self.format_buttons.items() if button.isChecked())

    @property
    def file(self) -> Path:
        """The main file; none that is there already, unless it was chosen by hand."""
        return self._file if self.suffix == FOLDER else self._file.with_name(f"{self._file.name}.{self.suffix}")

    @property
    def choices(self) -> FigureChoices:
        values: dict[str, Any] = {name: control.value for name, control in self.controls.items()}
        parts = tuple(name for name, box in self.parts.items() if box.isChecked())
        usual = bool(self._example) or frozenset(parts) == self._usual_parts
        return FigureChoices(panels=() if usual else parts, **values)

    @property
    def left_out(self) -> list[str]:
        """Names of the figures of several that are left out."""
        return [name for name, box in self.parts.items() if self._example and not box.isChecked()]

    @property
    def unwanted(self) -> list[str]:
        """Names of the figures that a person left out, not those that cannot be drawn."""
        return [name for name in self.left_out if self.parts[name].isEnabled()]

    def refuse_part(self, name: str, reason: str) -> None:
        """Leave out a figure that cannot be drawn, for this reason."""
        self.parts[name].setChecked(False)
        set_refusal(self.parts[name], reason)

    def command(self) -> list[str]:
        """Return the arguments of `trainer` without the main file."""
        command = list(self._command_for(self.suffix) or ())
        if not self._has_choices(command):
            return command
        command += ["--without", *self.left_out] if self.left_out else []
        command += options(self.choices)
        beside = [] if self._example else [suffix for suffix in self._beside if suffix != self.suffix]
        files = [str(self.file.with_suffix(f".{suffix}")) for suffix in beside]
        return [*command, "--out", *files] if files else command

    @property
    def _beside(self) -> list[str]:
        return [suffix for suffix, box in self.also.items() if box.isChecked()]

    def _has_choices(self, command: Sequence[str]) -> bool:
        if self._example:
            return True
        return bool(command) and self.suffix in FIGURES and takes_choices(command)

    # -- acts --------------------------------------------------------------------------------------------------

    def export(self) -> None:
        if self.start.isEnabled():
            self.chosen.emit(self.command(), self.file)
            self.accept()

    def copy(self) -> None:
        """Hand out the command, with names of files that go to the current folder."""
        files = [self.file.name]
        command = self.command()
        if "--out" in command:
            index = command.index("--out")
            files += [Path(name).name for name in command[index + 1 :]]
            command = command[:index]
        self.copied.emit([*command, "--out", *files])

    def ask_file(self) -> None:
        dialog = QFileDialog(self, "Export", str(self.file.parent), objectName="exportFile")
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([f"*.{suffix}" for suffix in self._suffixes])
        dialog.setDefaultSuffix(self.suffix)
        dialog.selectFile(self.file.name)
        dialog.fileSelected.connect(lambda name: self.take_file(Path(name)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def take_file(self, file: Path) -> None:
        """Export to this file, in the format that it is named after."""
        suffix = file.suffix.removeprefix(".").lower()
        has_format = suffix in self.format_buttons
        self._file = file.with_suffix("") if has_format else file
        if has_format:
            self.format_buttons[suffix].setChecked(True)
        self._show_format()

    def done(self, result: int) -> None:
        self.remembered.emit(replace(self.choices, panels=()), self._beside)
        self._previews.close()
        super().done(result)

    def focusNextPrevChild(self, forward: bool) -> bool:
        layouts.tab_as_laid_out(self)  # the parts of a figure are known later than what stands below them
        return super().focusNextPrevChild(forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Where the dialog is not the active window, its shortcuts are not looked at.
        if (
            event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            and event.modifiers() & Qt.KeyboardModifier.ControlModifier
        ):
            self.export()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._previews.close()
        super().closeEvent(event)

    # -- what is seen ------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Draw the figure as it is chosen."""
        suffix = self.suffix if self.suffix in (*FIGURES, *FILMS) else FIGURES[0]
        command = self._example or list(self._command_for(suffix) or ())
        if not command or command[0] not in DRAWING:
            self.size_note.setText("This format has no preview.")
            return
        if suffix in FILMS:
            command.append("--frame")
        self._previews.ask([*command, *options(self.choices)] if takes_choices(command) else command)

    def _show_figure(self, file: str, figure: dict[str, Any]) -> None:
        size = float(figure.get("width_mm") or 0), float(figure.get("height_mm") or 0)
        self._drew = True
        self.sheet.show_figure(file, size)
        self._show_parts(figure.get("parts") or [])
        facts = {"svg": "vectors, text stays text", "pdf": "vectors, fonts embedded", "png": "300 dpi"}
        parts = [f"{size[0]:.0f} × {size[1]:.0f} mm"] if size[0] else []
        parts += [f"smallest text {figure['smallest_pt']:g} pt"] if figure.get("smallest_pt") else []
        parts += [facts[self.suffix]] if self.suffix in facts else []
        if self.suffix in FILMS:
            width, height = self.sheet.picture.size().toTuple()
            parts = [f"{width:,} × {height:,} pixels", "last frame"]
        parts = ["Example", *parts] if self._example else [*parts, "command in the metadata"]
        self.size_note.setText(" · ".join(parts))

    def _show_failure(self, reason: str) -> None:
        self.size_note.setText(reason)
        self._reading.setText("The panels are known once there is a preview.")

    def _show_parts(self, parts: Sequence[dict[str, Any]]) -> None:
        if self.parts or self._example:
            return
        if not parts:
            self._reading.setText("The figure has one part.")
            return
        without_tables = frozenset(part["name"] for part in parts if not part["is_table"])
        self._usual_parts = without_tables or frozenset(part["name"] for part in parts)
        self._reading.hide()
        for part in parts:
            name = str(part["name"])
            self._add_part(name, str(part["title"]), str(part["size"]), checked=name in self._usual_parts)

    def _add_part(self, name: str, title: str, beside: str = "", *, checked: bool) -> None:
        size = layouts.text(beside, "small")
        # The choices below are as wide as the widest row: a long title must not push them out of the dialog.
        room = FORM_PX - 2 * theme.AROUND - BOX_PX - size.sizeHint().width()
        text = self.fontMetrics().elidedText(title, Qt.TextElideMode.ElideMiddle, room)
        box = QCheckBox(text, checked=checked, accessibleName=title, toolTip=title)
        box.setObjectName(f"export-part-{name}")
        box.toggled.connect(lambda _on: self._on_part(box))
        self.parts[name] = box
        self._part_rows.insertLayout(len(self.parts), layouts.row((box, 1), size, gap=theme.SPACE))

    def _on_part(self, box: QCheckBox) -> None:
        if self._example:
            return  # the preview is of one figure, and what else is exported needs none
        if not any(other.isChecked() for other in self.parts.values()):
            # A figure of nothing is none.
            box.setChecked(True)
            return
        self._ask()

    def _show_format(self) -> None:
        self._show_reason()
        self._reading.setText("Reading…")
        self.target.setText(f"{self.file.name} in {self.file.parent.name or self.file.parent}")
        self.target.setToolTip(str(self.file))
        set_refusal(
            self.start, "" if self._command_for(self.suffix) else "What is shown cannot be written in this format."
        )
        self._ask()

    def _show_reason(self) -> None:
        """Show the choices if the format takes them, else why it does not."""
        has_choices = self._has_choices(list(self._command_for(self.suffix) or ()))
        all_parts = _ALL_PARTS.format(self.format_buttons[self.suffix].text())
        fixed = {**dict.fromkeys(FIGURES, _FIXED), **dict.fromkeys(FILMS, _FILM)}
        self.reason.setText("" if has_choices else fixed.get(self.suffix, all_parts))
        self.reason.setVisible(not has_choices)
        self.choosing.setVisible(has_choices)
        for suffix, box in self.also.items():
            set_refusal(box, "" if suffix != self.suffix else "It is the format chosen above.")

    def _show_busy(self, busy: bool) -> None:
        if busy:
            self.size_note.setText("Rendering…")
            self._patience.start()
        else:
            self._patience.stop()
            self.busy_bar.hide()

    def _show_wait(self) -> None:
        """Show that the figure takes longer, and what it waits for."""
        self.size_note.setText(
            "Rendering: computing the chart again…" if self._drew else "Rendering: loading libraries and data…"
        )
        self.busy_bar.show()

    # -- building ----------------------------------------------------------------------------------------------

    def _connect(self, previews: FigurePreviews) -> None:
        previews.drawn.connect(self._show_figure)
        previews.failed.connect(self._show_failure)
        previews.busy_changed.connect(self._show_busy)
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            QShortcut(QKeySequence(keys), self, activated=self.export)

    def _formats(self, formats: Sequence[tuple[str, str]]) -> dict[str, QPushButton]:
        group, buttons = QButtonGroup(self), {}
        for suffix, label in formats:
            button = QPushButton(suffix.upper() if len(suffix) < 5 else suffix.capitalize(), checkable=True)
            button.setAutoExclusive(True)
            button.setObjectName(f"export-format-{suffix}")
            button.setAccessibleName(f"Format: {label}")
            button.setToolTip(label)
            button.setAutoDefault(False)
            group.addButton(button)
            buttons[suffix] = button
        next(iter(buttons.values())).setChecked(True)
        group.buttonToggled.connect(lambda _button, on: self._show_format() if on else None)
        return buttons

    def _control(self, field: Any) -> Control | None:
        if field.kind == "choice":
            control = Choose(field, "export", beside_px=LABEL_PX)
            for button in control.buttons.values():
                button.setAutoDefault(False)
            return control
        return Check(field, "export") if field.kind == "flag" else None

    def _format_rows(self) -> QVBoxLayout:
        """Return the formats, three or four in a line, whichever fills the last line more."""
        buttons = list(self.format_buttons.values())
        per_line = min(PER_LINE, key=lambda count: -len(buttons) % count)
        rows = layouts.column(gap=theme.SPACE)
        for start in range(0, len(buttons), per_line):
            label = layouts.text("Format" if start == 0 else "", "secondary")
            label.setFixedWidth(LABEL_PX)
            line = buttons[start : start + per_line]
            width = (FORM_PX - LABEL_PX - 2 * theme.BETWEEN) // per_line - theme.SPACE
            for button in line if len(buttons) > per_line else ():
                button.setFixedWidth(width)
            stretch = [layouts.STRETCH] if len(buttons) > per_line else []
            cells = [(button, 0 if stretch else 1) for button in line]
            rows.addLayout(layouts.row(label, layouts.row(*cells, *stretch, gap=theme.SPACE), gap=0))
        return rows

    def _lay_out(self) -> None:
        self._part_rows = layouts.column(gap=theme.SPACE)
        self._reading = layouts.text("Reading…", "small")
        self.reason = layouts.text(role="small", name="export-reason", wrap=True)
        self._part_rows.addWidget(self._reading)
        choices = [control for control in self.controls.values() if isinstance(control, Choose)]
        checks = [control for control in self.controls.values() if isinstance(control, Check)]
        self._part_rows.addStretch(1)
        also = layouts.text("Also as", "secondary")
        also.setFixedWidth(LABEL_PX)
        self._reading.setVisible(not self._example)
        parts = layouts.panel(self._part_rows)
        if not self._example:  # What is below stays where it is when the panels are read.
            parts = layouts.scroll(parts, "export-panels")
            parts.setFixedHeight(PANELS_PX)
        beside = () if self._example else (layouts.row(also, *self.also.values(), layouts.STRETCH, gap=theme.INSIDE),)
        self.choosing = layouts.panel(
            layouts.column(
                layouts.hairline(),
                layouts.text("Figures, with their numbers" if self._example else "Panels", "secondary"),
                parts,
                *([self.contents] if self._example else []),
                layouts.hairline(),
                *choices,
                layouts.hairline(),
                *checks,
                *beside,
                gap=theme.INSIDE,
            )
        )
        # The format stands first: it decides which of the others there are, and stays where it is.
        rows = (self._format_rows(), self.reason, self.choosing, layouts.STRETCH)
        scroll = layouts.scroll(layouts.panel(layouts.column(*rows, gap=theme.INSIDE, margins=theme.BETWEEN)))
        scroll.setFixedWidth(FORM_PX)
        stage = layouts.panel(
            layouts.column((self.sheet, 1), self.busy_bar, self.size_note, gap=theme.INSIDE, margins=theme.AROUND)
        )
        stage.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        theme.set_role(stage, "background")
        layouts.column((layouts.row((stage, 1), scroll, gap=0), 1), layouts.hairline(), self._footer(), gap=0, of=self)

    def _footer(self) -> QWidget:
        change = _button("Change…", "export-change", self.ask_file)
        copy = _button("Copy as command", "export-copy", self.copy)
        theme.keep_icon(copy, "terminal", 16)
        cancel = _button("Cancel", "export-cancel", self.reject)
        self.start = _button("Export", "export-start", self.export)
        self.start.setToolTip("Export (Ctrl+Enter)")
        self.start.setDefault(True)
        theme.set_role(self.start, "primary")
        return layouts.panel(
            layouts.row((self.target, 1), change, theme.BETWEEN, copy, cancel, self.start, margins=theme.BETWEEN)
        )


def _button(text: str, name: str, act: Callable[[], object]) -> QPushButton:
    button = QPushButton(text, objectName=name, autoDefault=False, clicked=lambda: act())
    return button


def free_stem(folder: Path, stem: str, suffixes: Sequence[str]) -> Path:
    """Return a file without its suffix that is not there with any of the suffixes: `map`, `map-2` ..."""
    number = 1
    while True:
        name = stem if number == 1 else f"{stem}-{number}"
        if not any((folder / f"{name}.{suffix}").exists() for suffix in (*suffixes, "csv")):
            return folder / name
        number += 1
