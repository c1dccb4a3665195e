"""Pass news from the store to the bar, the status bar, the banner and the model process."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal

from explorer.intents import ChooseModel, EditAndRestart, WatchTraining
from explorer.widgets.banner import UNDO_MS
from explorer.window.desktop_notifications import DesktopNotifications
from explorer.window.picker_choices import PickerChoices, facts_of, first_choice
from explorer.window.stop_banner import StopBanner
from trainer.config import default_paths

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from explorer.state.selection import Selection
    from explorer.widgets.banner import Act, Banner
    from explorer.window.bar import Bar
    from explorer.window.device_monitor import DeviceMonitor
    from explorer.window.menus import CommandedFrame
    from explorer.window.services import Services
    from explorer.window.status_bar import StatusBar
    from trainer.store import RunRow


WORKING_KEY: Final = "runs/working"
"""Under which a window remembers what trains and waits, so that the next one can tell what ended meanwhile."""


QUEUE_WAITS: Final = "The queue of this workspace is about to start."
READ_ONLY: Final = "Read-only: "
"""What a banner says while the queue is not yet let go on."""
KEPT: Final = "The curves until then are kept."


class Notifications(QObject):
    """Listens to the jobs and the selection for the window."""

    requested = Signal(object)  # An `EditAndRestart` of a run that failed, a `WatchTraining` of a watch that ended.

    def __init__(
        self, services: Services, bar: Bar, status: StatusBar, banner: Banner, window: CommandedFrame, *, warm: bool
    ) -> None:
        """Connect the signals, before the jobs are watched; `warm` loads models in advance."""
        super().__init__(window)
        self._warm, self._window = warm, window
        self._services, self._bar, self._status, self._banner = services, bar, status, banner
        self._selection: Selection = services.context.selection
        self._known: frozenset[tuple[int, bool]] = frozenset()
        self._told_queue = False
        self._stalled: dict[int, str] = {}
        self._settings = services.context.settings
        self._before: list[int] | None = self._settings.value(WORKING_KEY, [])
        self._working: list[int] = []
        self._desktop = DesktopNotifications(banner)
        self._devices: DeviceMonitor | None = None
        self._stopping = StopBanner(services.context, banner, self._desktop, self)
        jobs = services.jobs
        jobs.runs_changed.connect(self._take_runs)
        jobs.runs_changed.connect(self._withdraw_stalled)
        jobs.snapshots_changed.connect(self._run_grew)
        jobs.run_ended.connect(self._show_end)
        status.load_clicked.connect(self._show_devices)
        jobs.deleted.connect(self._show_deleted)
        jobs.alerted.connect(self._show_alert)
        jobs.failed.connect(self._show_failure)
        jobs.look_only_changed.connect(self._take_look_only)
        jobs.adopted.connect(self._show_adopted)
        jobs.starts_soon.connect(self._take_start)
        status.hold_clicked.connect(self._hold)
        status.look_only_clicked.connect(self._show_look_only)
        services.client.state_changed.connect(self._show_model)
        self._selection.runs_changed.connect(self.read_facts)

    def take_torch(self) -> None:
        """Say that torch is installed, and read what the selected runs can answer now."""
        self._banner.show_message("Torch is installed: training and models work now.", tone="good")
        self.read_facts()

    def read_facts(self) -> None:
        """Read which steps and data the selected runs have, and which of these runs can answer queries."""
        services, runs = self._services.context, self._selection.runs
        # An analysis of the open view must not hold up the bar, nor the models that are loaded next.
        services.background.run(self, facts_of, services.workspace, runs, done=self._take_facts, urgent=True)

    def _take_facts(self, facts: PickerChoices) -> None:
        before = self._bar.dataset.key
        self._bar.show_facts(facts)
        if before is not None and self._bar.dataset.key not in (None, before):
            # Numbers of pairs are of the data that was shown: of this one they are other pairs. Data that these runs
            # lack would stay selected behind the bar, which shows others.
            dataset = self._selection.dataset
            self._selection.propose(pairs=(), dataset=dataset if dataset in facts.datasets else None)
            if dataset == self._selection.dataset:
                self._selection.dataset_changed.emit()
        if facts.askable and self._warm and not self._services.context.workspace.look_only:
            # So that the first dropped image is answered at once.
            self._services.client.warm_up(facts.askable)

    def _take_runs(self, runs: list[RunRow]) -> None:
        self._bar.show_runs(runs)
        self._status.show_runs(runs)
        self._show_meanwhile(runs)
        ids = frozenset((run.id, not run.curves_only) for run in runs)
        if ids != self._known:
            self._known = ids
            run_a, run_b = first_choice(runs, self._selection.run_a, self._selection.run_b)
            self._selection.propose(run_a=run_a, run_b=run_b)

    def _show_meanwhile(self, runs: list[RunRow]) -> None:
        """Report with the first poll which runs ended while no window was open, then save the active ones."""
        before, self._before = self._before, None
        if self._services.jobs.look_only:
            return
        ended = [run for run in runs if before and run.id in before and not run.active]
        if ended:
            grave = [run for run in ended if run.status in ("failed", "interrupted")]
            outcomes = "; ".join(_how_it_ended(run) for run in ended[:3])
            more = f"; and {len(ended) - 3} more" if len(ended) > 3 else ""
            reasons = "\n".join(f"{run.short_name}: {run.reason}" for run in grave if run.reason)
            self._banner.show_message(
                f"While no window was open: {outcomes}{more}.",
                grave[0].reason if grave else "",
                tone="warn" if grave else "good",
                details=reasons,
            )
        active = [run.id for run in runs if run.active]
        if active != self._working or before is not None:
            self._working = active
            self._settings.set(WORKING_KEY, active)

    def _take_start(self, runs: int, seconds: int) -> None:
        """Announce which runs start when, with a way to pause them: in a banner, unless it shows something else."""
        self._status.show_start(runs, seconds)
        announcement = f"{runs} {'run starts' if runs == 1 else 'runs start'} in {seconds} s."
        if not runs:
            self._banner.withdraw(QUEUE_WAITS)
        elif not self._banner.amend(QUEUE_WAITS, announcement) and not self._told_queue and not self._banner.is_grave:
            self._told_queue = True
            self._banner.show_message(QUEUE_WAITS, announcement, tone="warn", action=("Hold the queue", self._hold))

    def _hold(self) -> None:
        from trainer.scheduling import queue

        jobs = self._services.jobs
        jobs.do(queue.choose_slots, held=True)
        go: Act = ("Let it start", lambda: jobs.do(queue.choose_slots, held=False))
        self._banner.show_message(
            "The queue is held: nothing in it starts.", "Release it in Runs, Parallel runs.", action=go, tone="warn"
        )

    def _take_look_only(self, why: str) -> None:
        self._status.show_look_only(why)
        # What the window said at its start, a crash, comes first; the status line stays.
        is_free = not self._banner.isVisible() or self._banner.message.text().startswith(READ_ONLY)
        if why and is_free and not default_paths.is_sample(self._services.context.workspace.folder):
            self._show_look_only()

    def _show_look_only(self) -> None:
        jobs, workspace = self._services.jobs, self._services.context.workspace
        disabled = "Nothing can be trained or changed."
        if default_paths.is_sample(workspace.folder):
            own_runs = ("My runs", self._window.back) if self._window.back is not None else None
            self._banner.show_message(f"{jobs.read_only_reason}.", disabled, tone="warn", action=own_runs)
            return
        adoptable = workspace.may_be_adopted
        question = "Make it yours if you trust its author." if adoptable else workspace.next_step
        self._banner.show_message(
            f"{READ_ONLY}{jobs.look_only}.",
            f"{disabled} {question}",
            tone="warn",
            action=("Make it mine", jobs.adopt) if adoptable else None,
            other=("Keep it read-only", self._banner.hide) if adoptable else None,
        )

    def _show_adopted(self, waiting: int) -> None:
        text = f"{waiting} {'run waits' if waiting == 1 else 'runs wait'} in its queue, which is held: see Runs."
        self._banner.show_message(
            "This workspace is yours.", text if waiting else "Its runs can be resumed.", tone="good"
        )
        self.read_facts()

    def _show_failure(self, reason: str) -> None:
        if reason == self._services.context.workspace.refusal:
            self._show_look_only()
        else:
            self._banner.show_message(reason)

    def _show_devices(self, widget: QWidget) -> None:
        from explorer.window.device_monitor import DeviceMonitor

        if self._devices is None:
            self._devices = DeviceMonitor(self._services.context, widget)
        self._devices.open_over(widget)

    def _run_grew(self, run: int) -> None:
        if run in self._selection.runs:
            self.read_facts()

    def _show_model(self, kind: str, state: str) -> None:
        if kind == "models":
            self._status.show_model(state)

    def _show_end(self, run: RunRow) -> None:
        self.read_facts()
        if self._stopping.show_end(run):
            return
        if run.status in ("failed", "interrupted") and run.is_watched:
            self._show_watch_ended(run)
        elif run.status in ("failed", "interrupted"):
            # Not above: the window is painted before the store is loaded.
            from explorer.run_control.actions import continuation

            self._services.context.background.run(
                self,
                continuation,
                self._services.context.workspace,
                run.id,
                done=partial(self._show_failed, run),
                failed=lambda _: self._show_failed(run, (None, False)),
                key=f"kept of {run.id}",
                urgent=True,
            )
        elif run.status == "finished":
            self._banner.show_message(f"{run.short_name} has finished.", tone="good")
        elif run.status == "stopped":
            self._show_stopped(run)

    def _show_stopped(self, run: RunRow) -> None:
        """Say where it stopped; where others train or wait, that Resume does not wait for them, with what does."""
        text, jobs = f"{_how_it_ended(run)}.", self._services.jobs
        if run.is_companion or run.experiment:
            all_of_it = f"Home resumes all runs of {run.experiment}." if run.experiment else ""
            self._banner.show_message(text, all_of_it, tone="info", ms=UNDO_MS)
            return
        from explorer.run_control.actions import requeue

        others = any(other.active for other in jobs.runs if other.id != run.id)
        self._banner.show_message(
            text,
            "Resume does not wait in the queue." if others else "",
            tone="info",
            action=self._resume(run),
            other=("Resume in the queue", lambda: jobs.do(requeue, run.id)) if others else None,
            ms=UNDO_MS,
        )

    def _resume(self, run: RunRow) -> Act:
        from trainer.scheduling import launch

        return "Resume", lambda: self._services.jobs.do(launch.start_detached, run.id)

    def _show_failed(self, run: RunRow, left: tuple[int | None, bool]) -> None:
        """Show the failure with possible actions; resuming only if a checkpoint, or a part of a download, is left."""
        step, downloads = left
        resume = self._resume(run)
        edit: Act = ("Edit and restart", lambda: self.requested.emit(EditAndRestart(run.id)))
        acts: tuple[Act, Act | None] = (edit, None)
        if step is not None:
            acts = (edit, resume) if run.status == "failed" else (resume, edit)
        how, said = "ended early", "See its log in Runs."
        if downloads:
            said, how = f"{said} The next try keeps what was downloaded.", "could not be downloaded"
            # What only evaluates a published model has no settings to edit.
            file: Act = ("Open a file…", lambda: self.requested.emit(ChooseModel()))
            acts = (("Try again", resume[1]), edit if run.total_steps else file)
        elif step is not None:
            said += f" Resume continues from step {step:,}."
        reason = run.reason.partition(" Check the network")[0] if downloads else run.reason
        self._banner.show_message(
            f"{run.short_name} {how}{': ' + reason if reason else '.'}",
            said,
            tone="bad" if run.status == "failed" else "warn",
            details=f"{run.name} ({run.folder})\n{run.status} at step {run.step}\n{run.reason}",
            action=acts[0],
            other=acts[1],
        )

    def _show_watch_ended(self, run: RunRow) -> None:
        """Say that a watch ended, why, and how to watch the folder again; the training is another program's."""
        from trainer.store.rows import WATCHED

        folder = str(run.facts[WATCHED])
        self._banner.show_message(
            f"{_how_it_ended(run)}.",
            f"{run.reason} {KEPT}".strip() if run.status == "failed" else run.reason,
            tone="warn",
            details=f"{run.name} ({run.folder})\n{folder}\n{run.reason}",
            action=("Watch again\u2026", lambda: self.requested.emit(WatchTraining(folder))),
        )

    def _show_alert(self, run: RunRow, kind: str) -> None:
        """Show a banner, and a desktop notification when the window is not in front; failed runs report their end."""
        from explorer.run_control.jobs import STALLED_S
        from trainer import alerts

        if kind == "stalled":
            message = f"{run.short_name} has not responded for {STALLED_S:.0f} s."
            step = "It may be in a long step, or its disk or device may hang; see its log in Runs."
            if run.is_watched:
                message = f"The watcher of {run.short_name} is behind: quiet for {STALLED_S:.0f} s."
                step = "The training is not affected; see the log of the watcher in Runs."
            self._stalled[run.id] = message
        elif not run.active:
            return
        else:
            message = f"{run.short_name}: {alerts.WORDS.get(kind, kind).lower()}."
            step = str(run.alerts[kind].get("words", ""))
        self._banner.show_message(message, step, tone="warn")
        self._desktop.show_message(message, step)

    def _withdraw_stalled(self, _rows: object) -> None:
        """Remove the banner of a trainer that responds again."""
        for run in [run for run in self._stalled if not self._services.jobs.is_stalled(run)]:
            self._banner.withdraw(self._stalled.pop(run))

    def _show_deleted(self, runs: list[RunRow]) -> None:
        message = f"Deleted {runs[0].short_name}." if len(runs) == 1 else f"Deleted {len(runs)} runs."
        files = f"The files stay in {self._services.context.workspace.runs_folder.name}/ until trainer runs purge."
        undo = self._selection.undo
        self._banner.show_message(message, files, tone="info", action=("Undo", undo.undo), ms=UNDO_MS)
        # Once anything else was done or undone, this button would undo that instead.
        undo.indexChanged.connect(lambda _: self._banner.withdraw(message), Qt.ConnectionType.SingleShotConnection)


def _how_it_ended(run: RunRow) -> str:
    """Return an outcome such as `CLOOB demo failed at step 120 (1,203 MiB in use)`; of a watch, that it ended."""
    if run.status == "finished":
        return f"{run.short_name} finished"
    if run.is_watched:
        return f"The watch of {run.short_name} ended at step {run.step:,}"
    memory = f" ({run.rss_mib:,.0f} MiB in use)" if run.rss_mib and run.status != "stopped" else ""
    verb = {"failed": "failed", "stopped": "stopped"}.get(run.status, "was interrupted")
    return f"{run.short_name} {verb} at step {run.step:,}{memory}"
