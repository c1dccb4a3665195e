"""Who takes the intents that views and dialogs send: a view, which is opened for it, or the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from PySide6.QtCore import QObject

from explorer import intents

if TYPE_CHECKING:
    from explorer.window.navigation import Navigation

VIEW_OF: Final[Mapping[type, str]] = {
    intents.OpenNewRun: "runs",
    intents.ChooseSlots: "runs",
    intents.TrainCopy: "runs",
    intents.EditAndRestart: "runs",
    intents.TrainLonger: "runs",
    intents.TrainDecoder: "runs",
    intents.FineTune: "runs",
    intents.MixRuns: "runs",
    intents.TrainOnImport: "runs",
    intents.TrainBoth: "experiments",
    intents.ShowRuns: "runs",
    intents.CompareBoth: "changes",
    intents.ShowExperiment: "experiments",
    intents.AddSeeds: "experiments",
    intents.EvaluateBoth: "evaluate",
    intents.Replay: "explaining",
    intents.MoveAlong: "decode",
    intents.ClassifyPictures: "classify",
}
"""Class of an intent -> the view that takes it; the window takes the others."""
OPENS_FORM: Final = (
    intents.OpenNewRun,
    intents.TrainCopy,
    intents.EditAndRestart,
    intents.TrainLonger,
    intents.TrainDecoder,
    intents.FineTune,
    intents.MixRuns,
    intents.TrainOnImport,
)
"""Intents that open a form over the open view, which stays where the form is cancelled."""


class IntentRouter(QObject):
    """Passes each intent to who takes it, at once or as soon as that exists."""

    def __init__(self, navigation: Navigation, parent: QObject) -> None:
        super().__init__(parent)
        self._navigation = navigation
        self._takers: Mapping[type, Callable[[Any], object]] = {}
        self._has_all_views = False
        self._waiting: list[intents.Intent] = []

    def begin(self, takers: Mapping[type, Callable[[Any], object]]) -> None:
        """Let the window take intents: class -> function."""
        self._takers = takers

    def finish(self) -> None:
        """Pass on what waited for views: all of them are built."""
        self._has_all_views = True
        waiting, self._waiting = self._waiting, []
        for intent in waiting:
            self.send(intent)

    def send(self, intent: intents.Intent) -> None:
        name = VIEW_OF.get(type(intent), "")
        if not self._has_taker(name, intent):
            self._waiting.append(intent)
        elif not name:
            self._takers[type(intent)](intent)
        elif (view := self._navigation.view(name, opened=not isinstance(intent, OPENS_FORM))) is not None:
            view.carry_out(cast(intents.ViewIntent, intent))

    def _has_taker(self, name: str, intent: intents.Intent) -> bool:
        if self._has_all_views:
            return True
        if name:
            return self._navigation.has_view(name)
        # A link may show any view, and reading data would slow those that are being built; a person who clicked waits.
        waits = isinstance(intent, intents.OpenLink) or (isinstance(intent, intents.OpenImport) and intent.path)
        return type(intent) in self._takers and not waits
