"""The page that is seen where torch is missing: what it is needed for, how large it is, and its installation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QProgressBar, QPushButton, QVBoxLayout, QWidget

from explorer import theme
from explorer.widgets import layouts
from explorer.widgets.refusal import set_refusal
from explorer.widgets.still import StillComboBox
from explorer.widgets.wrapped_label import WrappedLabel
from explorer.window.training_install import TrainingInstall
from trainer.distribution import training_install
from trainer.untrusted import shell

if TYPE_CHECKING:
    from explorer.event_loop.background import Background
    from explorer.state.settings import Settings
    from explorer.window.pages import Pages
    from explorer.window.status_bar import StatusBar

WIDTH: Final = 560
LABEL_WIDTH: Final = 96
LEFT_KEY: Final = "window/without_torch"
"""Whether the person has gone on without torch once: the page then waits in the status bar."""
_WORDS: Final = (
    "Training, opening models and classifying pictures need torch, which is not installed. Existing runs, their "
    "charts, and vectors and curves of other programs work without it."
)


class TrainingPage(QWidget):
    """Offers to install torch."""

    installed = Signal()  # Torch can be used now.
    left = Signal()  # The person goes on without it.

    def __init__(
        self, background: Background, parent: QWidget | None = None, *, install: TrainingInstall | None = None
    ) -> None:
        super().__init__(parent, objectName="installTorch")
        theme.set_role(self, "view")
        self._background = background
        self._plan: training_install.Plan | None = None
        self.install = install or TrainingInstall(self)
        self.install.changed.connect(self._on_change)
        self._build()
        self._lay_out()
        self._ask_plan()
        self._show()

    def arguments(self) -> list[str]:
        """Return the words after `trainer install` that do the same."""
        arguments = ["--backend", self.backend.currentData()]
        return arguments + (["--wheels", folder] if (folder := self.wheels.text().strip()) else [])

    def begin(self) -> None:
        """Start installing, or try again."""
        self.install.start(self.arguments())

    # -- building ------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self._icon = QLabel()
        theme.theme().follow(self._draw_icon)
        self._draw_icon()
        self.title = layouts.text("Install torch to train and open models", "title")
        self.text = layouts.text(_WORDS, "secondary", wrap=True)
        self.backend = StillComboBox(objectName="install-backend", accessibleName="Build")
        for name, text in training_install.BACKENDS.items():
            self.backend.addItem(f"{text[0].upper()}{text[1:]}", name)
        self.backend.currentIndexChanged.connect(self._ask_plan)
        self.wheels = QLineEdit(objectName="install-wheels", accessibleName="Folder of wheels", clearButtonEnabled=True)
        self.wheels.setPlaceholderText("The package index; or a folder of wheels, without a network")
        self.wheels.textChanged.connect(self._show)
        browse = QAction("Choose a folder of wheels", self.wheels, objectName="install-browse", triggered=self._choose)
        theme.keep_icon(browse, "folder-open", role="secondary")
        self.wheels.addAction(browse, QLineEdit.ActionPosition.TrailingPosition)
        self.facts = WrappedLabel(objectName="install-facts")
        self.place = layouts.text(role="small", name="install-place", wrap=True)
        self.bar = QProgressBar(accessibleName="Progress", textVisible=False)
        self.bar.setRange(0, 100)
        self.note = WrappedLabel(objectName="install-note")
        self.place.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.start = self._button("Install", "install-start", self.begin, "primary")
        self.pause = self._button("Pause", "install-pause", self._pause_or_go_on)
        self.cancel = self._button("Cancel", "install-cancel", self.install.cancel)
        self.details = self._button("Copy details", "install-details", self._copy_details)
        self.copy = self._button("Copy as command", "install-copy", self._copy)
        self.leave = self._button("Continue without it", "install-leave", self.left.emit, "quiet")

    def _draw_icon(self) -> None:
        self._icon.setPixmap(theme.icon("download", 40, "outline").pixmap(40, 40))

    def _button(self, label: str, name: str, act: Callable[[], object], role: str = "") -> QPushButton:
        button = QPushButton(label, objectName=name, clicked=lambda _checked=False: act())
        if role:
            theme.set_role(button, role)
        return button

    def _lay_out(self) -> None:
        grid = layouts.grid(theme.BETWEEN, theme.INSIDE)
        for row, (text, editor) in enumerate((("Build", self.backend), ("From", self.wheels))):
            label = layouts.text(text, buddy=editor)
            label.setFixedWidth(LABEL_WIDTH)
            grid.addWidget(label, row, 0)
            grid.addWidget(editor, row, 1)
        texts = layouts.column(self.facts, self.place, margins=(LABEL_WIDTH + theme.BETWEEN, 0, 0, 0))
        buttons = layouts.row(
            self.start, self.pause, self.cancel, self.details, self.copy, (layouts.STRETCH, 1), self.leave
        )
        parts = (self._icon, self.title, self.text, grid, texts, self.bar, self.note, buttons)
        inner = layouts.panel(layouts.column(*parts, gap=theme.BETWEEN))
        inner.setFixedWidth(WIDTH)
        # Stretches, not an alignment: an aligned item gets its hint, and wrapped lines would be cut.
        middle = layouts.row((layouts.STRETCH, 1), inner, (layouts.STRETCH, 1), gap=None)
        layouts.add(QVBoxLayout(self), (layouts.STRETCH, 2), middle, (layouts.STRETCH, 3))

    # -- what is seen --------------------------------------------------------------------------------------------

    def _ask_plan(self) -> None:
        self._background.run(
            self, training_install.plan, self.backend.currentData(), done=self._take_plan, key="install-plan"
        )

    def _take_plan(self, plan: training_install.Plan) -> None:
        self._plan = plan
        self._show()

    def _show(self) -> None:
        state, install = self.install.state, self.install
        self._show_plan()
        busy = "The installation is running." if install.busy else ""
        set_refusal(self.wheels, busy)
        set_refusal(self.backend, busy or ("The wheels of the folder decide it." if self.wheels.text().strip() else ""))
        self.bar.setVisible(install.busy)
        self.bar.setValue(round(100 * install.share))
        self.start.setVisible(not install.busy)
        self.start.setText("Retry" if state == "failed" else "Install")
        self.pause.setVisible(install.busy)
        self.pause.setText("Continue" if state == "paused" else "Pause")
        self.cancel.setVisible(install.busy)
        self.details.setVisible(state == "failed")
        self.copy.setVisible(not install.busy)
        self.leave.setText("Continue in the background" if install.busy else "Continue without it")
        self._show_note()

    def _on_change(self) -> None:
        self._show()
        if self.install.state == "done":
            self.installed.emit()

    def _show_note(self) -> None:
        state, install = self.install.state, self.install
        text = {
            "running": f"{install.note[:1].upper()}{install.note[1:]}…",
            "paused": "Paused. After a long pause, an interrupted download begins again.",
            "failed": install.reason,
        }.get(state, "")
        self.note.setText(text)
        self.note.setVisible(bool(text))
        theme.set_role(self.note, "bad" if state == "failed" else "secondary")

    def _show_plan(self) -> None:
        plan = self._plan
        offline = bool(self.wheels.text().strip())
        if plan is None:
            return
        if offline:
            self.facts.setText("Everything is taken from the folder. A wheel is code: use only wheels you trust.")
        else:
            room = "" if plan.fits else " That is too little."
            self.facts.setText(
                f"{plan.why} Download: about {plan.download_gb:.1f} GB. On disk: about {plan.disk_gb:.1f} GB, of "
                f"{plan.free_gb:,.1f} GB free.{room}"
            )
        why = ", because the environment of this program must not be changed" if plan.private else ""
        self.place.setText(f"Installed into {plan.folder}{why}.")
        set_refusal(self.start, "" if plan.fits or offline else "The disk has too little room.")

    # -- what the person does ------------------------------------------------------------------------------------

    def _pause_or_go_on(self) -> None:
        if self.install.state == "paused":
            self.install.resume()
        else:
            self.install.pause()

    def _choose(self) -> None:
        if chosen := QFileDialog.getExistingDirectory(self, "Choose a folder of wheels", self.wheels.text()):
            self.wheels.setText(chosen)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(shell.join(["trainer", "install", *self.arguments()]))

    def _copy_details(self) -> None:
        QGuiApplication.clipboard().setText(self.install.words or self.install.reason)


class TrainingOffer(QObject):
    """Shows the page where torch is missing, until the person leaves it, and keeps a way back in the status bar.

    Attributes:
        in_front: Whether the page is seen instead of the open view.
    """

    turned = Signal()  # The page is to come to the front, or to leave it.
    installed = Signal()  # Torch can be used now.

    def __init__(
        self,
        name: str,
        pages: Pages,
        status: StatusBar,
        settings: Settings,
        background: Background,
        parent: QObject | None = None,
    ) -> None:
        """Create the page, which `pages` keep under `name`."""
        super().__init__(parent)
        self._status, self._settings = status, settings
        self.page = TrainingPage(background)
        pages.add_page(name, self.page)
        self.in_front = settings.value(LEFT_KEY) is not True
        self.page.left.connect(self._leave)
        self.page.installed.connect(self._end)
        self.page.install.changed.connect(self._show_in_status)
        status.install_clicked.connect(self.show)
        self._show_in_status()

    def show(self) -> None:
        """Bring the page to the front."""
        self.in_front = True
        self.turned.emit()

    def close(self) -> None:
        """End an installation: what was downloaded is kept."""
        self.page.install.cancel()

    def _leave(self) -> None:
        self._settings.set(LEFT_KEY, True)
        self.in_front = False
        self.turned.emit()

    def _end(self) -> None:
        self.in_front = False
        self._status.show_install("")
        self.turned.emit()
        self.installed.emit()

    def _show_in_status(self) -> None:
        install = self.page.install
        text_of = {
            "running": f"Installing torch, {100 * install.share:.0f} %",
            "paused": "Installing torch, paused",
            "failed": "Torch was not installed",
            "done": "",
        }
        self._status.show_install(text_of.get(install.state, "Install torch"))
