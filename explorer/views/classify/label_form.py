"""The panel for editing labels and templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QSyntaxHighlighter, QTextCharFormat, QTextDocument
from PySide6.QtWidgets import (
    QAbstractButton,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QWidget,
)

from explorer import theme
from explorer.state.settings import Settings
from explorer.views.classify import text_input
from explorer.widgets import layouts
from explorer.widgets.disclosure_button import DisclosureButton
from explorer.widgets.flow_row import FlowRow
from explorer.widgets.still import StillComboBox
from trainer import prompt_suites
from trainer.analysis.class_prompts import PLAIN_TEMPLATE
from trainer.prompt_suites import PromptSuite
from trainer.store.caption_words import CaptionWords, unseen_sentences, words_in

DEBOUNCE_MS: Final = 250
MOST_CHIPS: Final = 24
"""Labels with a chip of their own; a suite of a thousand is edited as a text."""
LONGEST_CHIP: Final = 24
NEW_LABEL_PX: Final = 128
EDITOR_PX: Final = 120
"""Height of the labels as a text where the chips are seen, too."""
OF_THE_RUN: Final = "of the run"
OWN: Final = "own"


class LabelForm(QWidget):
    """A suite picker, the labels, the templates, and a note about ignored ones.

    Args:
        is_whole: Whether suites, chips and remarks stand in the form; else the view shows `suites` and `chip_bar`, and
            the form, which `edit` asks for, holds the texts alone.
        parent: Of the form.
    """

    changed = Signal()  # Labels or templates are others now, 250 ms after the last key.
    run_wanted = Signal()  # The labels of run A's data are to be filled in.

    def __init__(self, *, is_whole: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="classifyQuestions")
        self.suites = StillComboBox(objectName="classifySuites", accessibleName="Suite of labels and templates")
        self.suites.addItem("From run A's data", OF_THE_RUN)
        for name in prompt_suites.prompt_suites():
            self.suites.addItem(name.capitalize(), name)
        self.suites.addItem("Custom labels", OWN)
        self.labels_edit = _editor("classifyLabels", "Labels, separated by commas or lines")
        self.templates_edit = _editor("classifyTemplates", "Templates, one per line")
        self.chips: list[QPushButton] = []
        self.new_label = NewLabel()
        self._chip_row = FlowRow()
        self._chip_row.add(self.new_label)
        self._more = layouts.text(role="small")
        self._is_whole = is_whole
        self.edit: QAbstractButton = DisclosureButton("Edit as text") if is_whole else QPushButton("Edit…")
        self.edit.setObjectName("classifyEditLabels")
        self.edit.setCheckable(True)
        self.unfold = DisclosureButton("Templates")
        self._first_template = layouts.elided(role="small")
        self.unfold.setObjectName("classifyUnfold")
        self.unfold.toggled.connect(self._fold)
        self._labels_count = layouts.text(role="small")
        self._labels_remark, self._templates_remark = (
            _remark("classifyLabelsRemark", self),
            _remark("classifyTemplatesRemark", self),
        )
        self._labels, self._templates = text_input.labels(""), text_input.templates("")
        self._names: tuple[str, ...] = ()
        self._read: tuple[CaptionWords | None, ...] = ()
        self._unseen_note = _remark("classifyUnseen", self)
        self.chip_bar = QWidget()
        self._underlines = [Underline(edit.document(), self.unseen_words) for edit in self._editors]
        self._later = QTimer(self, singleShot=True, interval=DEBOUNCE_MS, timeout=self._announce)
        self.write("", "")
        self._lay_out()
        self.suites.activated.connect(self._choose_suite)
        self.new_label.returnPressed.connect(self._add)
        for edit in (self.labels_edit, self.templates_edit):
            edit.textChanged.connect(self._edited)

    @property
    def _editors(self) -> tuple[QPlainTextEdit, QPlainTextEdit]:
        return self.labels_edit, self.templates_edit

    def take_caption_words(self, names: Sequence[str], vocabularies: Sequence[CaptionWords | None]) -> None:
        """Underline what the training captions of these runs lack; None: of a run whose captions are not known."""
        self._names, self._read = tuple(names), tuple(vocabularies)
        self._show_unseen()

    def unseen_words(self, text: str) -> tuple[str, ...]:
        """Return the words of a text that no training caption of a run holds; none where no run's are known."""
        vocabularies = [vocabulary for vocabulary in self._read if vocabulary is not None]
        unseen = [set(vocabulary.unseen(text)) for vocabulary in vocabularies]
        return tuple(word for word in dict.fromkeys(words_in(text)) if unseen and all(word in of for of in unseen))

    def _show_unseen(self) -> None:
        self._mark_chips()
        for underline in self._underlines:
            underline.rehighlight()
        self._show_message(
            self._unseen_note, "\n".join(unseen_sentences(self._names, self._read, (*self.labels, *self.templates)))
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The valid labels, in the order written."""
        return self._labels.entries

    @property
    def templates(self) -> tuple[str, ...]:
        """The valid templates, in the order written."""
        return self._templates.entries

    @property
    def suite(self) -> str:
        """The name of the selected suite, `OF_THE_RUN`, or `OWN`."""
        return str(self.suites.currentData())

    def restore(self, settings: Settings) -> None:
        """Show the suite or the texts that any view kept by `remember`; those of a run are to be filled in later."""
        suite = settings.value("classify/suite", OF_THE_RUN)
        self.choose(suite if isinstance(suite, str) else OF_THE_RUN)
        if self.suite == OWN:
            stored = [settings.value(f"classify/{part}", "") for part in ("labels", "templates")]
            self.write(*(text if isinstance(text, str) else "" for text in stored))
        elif self.suite != OF_THE_RUN:
            self.fill(prompt_suites.prompt_suites()[self.suite])

    def remember(self, settings: Settings) -> None:
        """Keep the name of the suite, or a person's own texts, for every view."""
        settings.set("classify/suite", self.suite)
        if self.suite == OWN:
            settings.set("classify/labels", self.labels_edit.toPlainText())
            settings.set("classify/templates", self.templates_edit.toPlainText())

    def choose(self, suite: str) -> None:
        """Show a suite as selected without requesting its texts; an unknown one counts as the user's own."""
        index = self.suites.findData(suite)
        self.suites.setCurrentIndex(index if index >= 0 else self.suites.findData(OWN))

    def fill(self, suite: PromptSuite) -> None:
        """Set the labels and templates of a suite and announce them."""
        self.write(text_input.labels_text(suite.classes), "\n".join(suite.templates))

    def write(self, labels_text: str, templates_text: str) -> None:
        """Set both texts, the plain template where there is none, and announce them if the request changes."""
        texts = labels_text, templates_text if templates_text.strip() else PLAIN_TEMPLATE
        for edit, text in zip((self.labels_edit, self.templates_edit), texts, strict=True):
            edit.blockSignals(True)
            edit.setPlainText(text)
            edit.blockSignals(False)
        self._written = self._texts()
        self._is_edited = False
        self._announce()

    def _texts(self) -> tuple[str, str]:
        return self.labels_edit.toPlainText(), self.templates_edit.toPlainText()

    def _choose_suite(self) -> None:
        if self.suite == OF_THE_RUN:
            self.run_wanted.emit()
        elif self.suite != OWN:
            self.fill(prompt_suites.prompt_suites()[self.suite])
        else:
            self.edit.setChecked(True)

    def _show_chips(self) -> None:
        """Show a chip for each of the first labels; a click removes it."""
        while len(self.chips) < min(len(self.labels), MOST_CHIPS):
            chip = QPushButton()
            chip.clicked.connect(partial(self._remove, len(self.chips)))
            self._chip_row.add(chip, before=self.new_label)
            self.chips.append(chip)
        for index, chip in enumerate(self.chips):
            chip.setVisible(index < len(self.labels))
            if index < len(self.labels):
                chip.setText(f"{elided(self.labels[index])}  ×")
        self._mark_chips()
        self._more.setText(f"and {len(self.labels) - MOST_CHIPS:,} more")
        self._more.setVisible(len(self.labels) > MOST_CHIPS and self._more.parent() is not None)
        self._chip_row.updateGeometry()

    def _mark_chips(self) -> None:
        """Underline the labels with words that no training caption holds, and say which these are."""
        for chip, label in zip(self.chips, self.labels, strict=False):
            unseen = ", ".join(self.unseen_words(label))
            font = chip.font()
            font.setUnderline(bool(unseen))
            chip.setFont(font)
            why = f"No training caption contains {unseen}. " if unseen else ""
            chip.setToolTip(f"{why}Click to remove this label")
            chip.setAccessibleName(f"Remove the label {label}")
            chip.setAccessibleDescription(why.strip())

    def _remove(self, index: int) -> None:
        rest = (*self.labels[:index], *self.labels[index + 1 :])
        self.labels_edit.setPlainText(text_input.labels_text(rest))

    def _add(self) -> None:
        """Add the labels in the line behind the chips; one that is a chip already is refused in the remark."""
        typed = text_input.labels(self.new_label.text()).entries
        double = [label for label in typed if label in self.labels]
        self.new_label.clear()
        if len(double) < len(typed):
            self.labels_edit.setPlainText(text_input.labels_text(dict.fromkeys((*self.labels, *typed))))
            self._announce()
        if double:
            verb = "is a label" if len(double) == 1 else "are labels"
            self._show_message(self._labels_remark, f"{', '.join(map(elided, double))} {verb} already.")

    def _edited(self) -> None:
        # Qt announces a change of the text also where only its font has changed.
        if self._texts() == self._written:
            return
        self._written = self._texts()
        self._is_edited = True
        self.choose(OWN)
        self._later.start()

    def _announce(self) -> None:
        self._later.stop()
        before = self._labels.entries, self._templates.entries
        self._labels = text_input.labels(self.labels_edit.toPlainText())
        self._templates = text_input.templates(self.templates_edit.toPlainText())
        self._labels_count.setText(f"{len(self.labels):,}")
        self.unfold.setText(f"{(count := len(self.templates)):,} template{'s' * (count != 1)}")
        self.unfold.updateGeometry()
        self._first_template.setText(f"{self.templates[0] if self.templates else ''}{', …' * (count > 1)}")
        nothing = ("Write at least one label.", f"Write at least one template, such as: {PLAIN_TEMPLATE}")
        if not self._is_edited:
            nothing = ("", "")  # Nobody has written anything yet: nothing is wrong.
        self._show_message(self._labels_remark, self._labels.remark or ("" if self.labels else nothing[0]))
        self._show_message(self._templates_remark, self._templates.remark or ("" if self.templates else nothing[1]))
        if (self._labels.entries, self._templates.entries) != before:
            self._show_chips()
            self._show_unseen()
            self.changed.emit()

    @staticmethod
    def _show_message(remark: QLabel, text: str) -> None:
        remark.setText(text)
        remark.setVisible(bool(text))

    def _fold(self, unfolded: bool) -> None:
        """Hide all templates but the first: a suite brings dozens that are rarely edited; remarks on them stay."""
        self._first_template.setVisible(not unfolded)
        self.templates_edit.setVisible(unfolded)
        self._templates_hint.setVisible(unfolded)

    def _lay_out(self) -> None:
        self._templates_hint = layouts.text(
            "{} stands for a label, a(n) for its article. The embeddings of all templates are averaged.",
            "small",
            wrap=True,
        )
        self._show_chips()
        remarks: dict[str, list[layouts.Parts]] = {
            "labels": [self._labels_remark],
            "templates": [self._templates_remark, self._unseen_note],
        }
        above: list[layouts.Parts] = [_heading("Labels", self._labels_count)]
        if self._is_whole:
            self.labels_edit.hide()
            self.edit.toggled.connect(self.labels_edit.setVisible)
            layouts.column(self._chip_row, self._more, of=self.chip_bar)
            above = [_heading("Label set"), self.suites, theme.INSIDE, *above, self.chip_bar, self.edit]
        else:
            theme.set_role(self.edit, "quiet")
            close = QToolButton(objectName="classifyEditClose", accessibleName="Close labels and templates")
            close.setToolTip("Close (Esc)")
            close.clicked.connect(lambda: self.edit.setChecked(False))
            theme.keep_icon(close, "x", 16, "secondary")
            above = [layouts.row((_heading("Labels", self._labels_count), 1), close)]
            self.labels_edit.setMaximumHeight(EDITOR_PX)
            self.edit.setToolTip("Edit labels and templates as text")
            line = layouts.row(
                (self._chip_row, 1, Qt.AlignmentFlag.AlignTop), (self.edit, 0, Qt.AlignmentFlag.AlignTop)
            )
            layouts.column(
                line,
                self._more,
                *remarks["labels"],
                *remarks["templates"],
                margins=(0, 0, 0, theme.INSIDE),
                of=self.chip_bar,
            )
            remarks = {"labels": [], "templates": []}
        layouts.column(
            *above,
            (self.labels_edit, 1),
            *remarks["labels"],
            theme.INSIDE,
            layouts.row(self.unfold, layouts.STRETCH),
            self._first_template,
            (self.templates_edit, 2),
            self._templates_hint,
            *remarks["templates"],
            layouts.STRETCH,
            margins=theme.BETWEEN,
            of=self,
        )
        self._fold(unfolded=False)


class NewLabel(QLineEdit):
    """A line that adds labels; Escape empties it before it does anything else in the window."""

    def __init__(self) -> None:
        super().__init__(objectName="classifyNewLabel", accessibleName="Add a label", placeholderText="Add a label")
        self.setToolTip("Enter adds it; commas separate several")
        self.setFixedWidth(NEW_LABEL_PX)
        self.setAcceptDrops(False)

    def event(self, event: QEvent) -> bool:
        if (
            event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
            and self.text()
        ):
            if event.type() == QEvent.Type.KeyPress:
                self.clear()
            event.accept()
            return True
        return super().event(event)


class Underline(QSyntaxHighlighter):
    """Draws a wavy line below the words that no run has read."""

    def __init__(self, document: QTextDocument, unseen_words: Callable[[str], Sequence[str]]) -> None:
        super().__init__(document)
        self._unseen_words = unseen_words

    def highlightBlock(self, text: str) -> None:
        looks = QTextCharFormat()
        looks.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
        looks.setUnderlineColor(theme.color("warn"))
        for word in self._unseen_words(text):
            for match in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE):
                self.setFormat(match.start(), len(match[0]), looks)


def _editor(name: str, label: str) -> QPlainTextEdit:
    edit = QPlainTextEdit(objectName=name, accessibleName=label, placeholderText=f"{label}.", minimumHeight=72)
    edit.setTabChangesFocus(True)
    # A dropped image belongs to the view, not into the text as its address.
    edit.setAcceptDrops(False)
    return edit


def elided(label: str) -> str:
    """Return what a chip has room for of a label."""
    return label if len(label) <= LONGEST_CHIP else f"{label[: LONGEST_CHIP - 1]}…"


def _heading(text: str, *count: QLabel) -> QHBoxLayout:
    return layouts.row(layouts.text(text, "heading"), layouts.STRETCH, *count, gap=None)


def _remark(name: str, parent: QWidget) -> QLabel:
    label = layouts.text(role="warn", name=name, wrap=True)
    label.setParent(parent)  # shown without one, it would be a window of its own
    return label
