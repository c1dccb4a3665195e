"""Report runs that are still active after a stop request: when they are ended, how to wait, what happened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from explorer.run_control.jobs import Unresponsive
    from explorer.views.view import Context
    from explorer.widgets.banner import Banner
    from explorer.window.desktop_notifications import DesktopNotifications
    from trainer.store import RunRow

TICK_MS: Final = 250
"""How soon after its end a run is no longer counted down, at most."""
UNKNOWN: Final = -1
"""In place of a step: the store did not say what is kept."""


class StopBanner(QObject):
    """A single banner for all such runs, so that none hides another's buttons."""

    def __init__(self, context: Context, banner: Banner, desktop: DesktopNotifications, parent: QObject) -> None:
        super().__init__(parent)
        self._context, self._banner, self._desktop = context, banner, desktop
        self._jobs = context.jobs
        self._unresponsive: dict[int, RunRow] = {}
        self._ended: dict[str, int | None] = {}
        self._words = self._ended_words = ""
        self._covered = self._closed = self._untold = False
        self._clock = QTimer(self, interval=TICK_MS, timeout=self._go_on)
        self._jobs.became_unresponsive.connect(self._show_message)
        self._jobs.runs_changed.connect(self._go_on)

    def show_end(self, run: RunRow) -> bool:
        """Report that `run` was terminated, if it was; return whether it was."""
        if run.status != "interrupted" or not self._jobs.was_forced(run):
            return False
        # Not above: the window is painted before the store is loaded.
        from explorer.run_control.actions import newest_checkpoint

        self._context.background.run(
            self,
            newest_checkpoint,
            self._context.workspace,
            run.id,
            done=partial(self._show_end_message, run.short_name),
            failed=lambda _: self._show_end_message(run.short_name, UNKNOWN),
            key=f"kept of {run.id}",
            urgent=True,
        )
        return True

    def _show_message(self, run: RunRow) -> None:
        self._unresponsive[run.id] = run
        self._covered = False
        self._show()
        self._clock.start()
        # Only now: who counts down in the desktop's corner would have to take it back.
        self._desktop.show_message(self._words, self._next(self._known()))

    def _known(self) -> list[tuple[RunRow, Unresponsive | None]]:
        return [(run, self._jobs.unresponsive(run.id)) for run in self._unresponsive.values()]

    def _show(self) -> None:
        states = self._known()
        before, self._words = self._words, asked_words([run.short_name for run, _ in states])
        self._closed = False
        automatic = any(unresponsive is not None and unresponsive.left_s is not None for _, unresponsive in states)
        self._banner.show_message(
            self._words,
            self._next(states),
            tone="warn",
            action=("End now", self._end),
            other=("Wait", self._wait) if automatic else None,
            replaces=before,
        )

    def _next(self, states: Sequence[tuple[RunRow, Unresponsive | None]]) -> str:
        return next_words([(run.short_name, unresponsive) for run, unresponsive in states])

    def _go_on(self) -> None:
        """Update the countdown, drop runs that have ended, and show the banner again when another one is gone.

        What its person has closed stays closed.
        """
        before = len(self._unresponsive)
        self._unresponsive = {
            run: row for run, row in self._unresponsive.items() if self._jobs.unresponsive(run) is not None
        }
        states = self._known()
        if not any(unresponsive is not None and unresponsive.left_s is not None for _, unresponsive in states):
            self._clock.stop()
        if not before and not self._untold:
            return
        if self._banner.amend(self._words, self._next(states)):
            if not self._unresponsive:
                self._banner.withdraw(self._words)
            elif len(self._unresponsive) != before:
                self._show()
        elif self._banner.isVisible():
            self._covered = not self._closed
        elif self._covered and self._clock.isActive():
            self._covered = False
            self._show()
        else:
            self._closed = True
        if self._untold and not self._banner.isVisible():
            self._show_ended()

    def _end(self) -> None:
        for run in list(self._unresponsive):
            self._jobs.end(run)

    def _wait(self) -> None:
        runs = list(self._unresponsive.values())
        self._jobs.let_go_on([run.id for run in runs])
        self._clock.stop()
        # That is settled: a run that becomes unresponsive later is told of, and ended, without them.
        self._unresponsive = {}
        names = listed([run.short_name for run in runs])
        respond, them = ("it responds", "it") if len(runs) == 1 else ("they respond", "them")
        self._banner.show_message(
            f"{names} will be stopped as soon as {respond}.",
            f"End now in Runs still ends {them} immediately.",
            tone="info",
        )

    def _show_end_message(self, name: str, step: int | None) -> None:
        message = self._banner.message.text() if self._banner.isVisible() else ""
        together = self._untold or (bool(message) and message == self._ended_words)
        self._ended = {**(self._ended if together else {}), name: step}
        # The choice that others still leave comes first.
        self._untold = bool(self._unresponsive) and message == self._words
        if not self._untold:
            self._show_ended()

    def _show_ended(self) -> None:
        self._untold = False
        names = list(self._ended)
        self._ended_words = f"{listed(names)} did not stop and {'was' if len(names) == 1 else 'were'} ended."
        self._banner.show_message(self._ended_words, resume_words(list(self._ended.values())), tone="warn")


def asked_words(names: Sequence[str]) -> str:
    """Return a sentence about these runs: `CLIP demo was asked to stop and is still running.`, for example."""
    verb, runs = ("was", "is") if len(names) == 1 else ("were", "are")
    return f"{listed(names)} {verb} asked to stop and {runs} still running."


def next_words(states: Sequence[tuple[str, Unresponsive | None]]) -> str:
    """Return when the named runs are ended and what is lost; by name unless it is the same for all."""
    groups: dict[str, list[tuple[str, Unresponsive | None]]] = {}
    for name, unresponsive in states:
        groups.setdefault(_what(unresponsive), []).append((name, unresponsive))
    # What is urgent comes first.
    in_order = sorted(groups.items(), key=lambda group: group[0] != "ends")
    return " ".join(_next_of(what, group, by_name=len(groups) > 1) for what, group in in_order)


def _what(unresponsive: Unresponsive | None) -> str:
    """Return `ends`, the current activity waited for, or an empty string if the run is not ended automatically."""
    return "" if unresponsive is None or unresponsive.left_s is None else unresponsive.busy or "ends"


def _next_of(what: str, group: Sequence[tuple[str, Unresponsive | None]], *, by_name: bool) -> str:
    it, them, its, be = ("it", "it", "its", "is") if len(group) == 1 else ("they", "them", "their", "are")
    who = listed([name for name, _ in group]) if by_name else it.capitalize()
    unresponsive = [each for _, each in group if each is not None]
    loses = f"loses what {it} did since {_kept([each.kept for each in unresponsive], its)}"
    if not what:
        return f"{who} may be in a long step; ending {them} {loses}."
    if what != "ends":
        doing = what if len(group) == 1 else what.replace("its", "a")
        return f"{who} {be} {doing}, and will be stopped after that."
    left = sorted({round(each.left_s or 0.0) for each in unresponsive})
    if left == [0]:
        return f"{who} {be} being ended, which {loses}."
    return f"{who} {be} ended in {listed([str(each) for each in left])} s, which {loses}."


def resume_words(checkpoints: Sequence[int | None]) -> str:
    """Return from which steps the ended runs can be resumed."""
    steps = [f"{step:,}" for step in checkpoints if step not in (None, UNKNOWN)]
    it = "It" if len(checkpoints) == 1 else "They"
    if checkpoints == [None]:
        return "It had no checkpoint; resuming restarts it from step 0."
    if len(steps) < len(checkpoints):
        return f"{it} can be resumed in Runs."
    return f"{it} can be resumed from step{'s' if len(checkpoints) > 1 else ''} {listed(steps)}."


def _kept(steps: Sequence[int | None], its: str) -> str:
    """Return `step 120, its last checkpoint`, or another text if none is kept or known."""
    if len(steps) == 1 and steps[0] is not None:
        return f"step {steps[0]:,}, {its} last checkpoint"
    text = f"{its} last checkpoint" + ("s" if len(steps) > 1 else "")
    return text + (", if it has one" if steps == [None] else "")


def listed(names: Sequence[str]) -> str:
    """Join names as `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
