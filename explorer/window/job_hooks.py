"""Actions outside the window when a job ends: a desktop notification, a command, a post to a webhook.

The command and the address are kept in this user's own configuration, never in a workspace: a workspace may be a
stranger's, and what a file says is never an instruction. What a job is called reaches the command only as values of
environment variables, and no shell reads the command.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtWidgets import QCheckBox, QLineEdit, QWidget

from explorer import theme
from explorer.widgets.sheet import Sheet
from trainer.analysis.quantities import duration
from trainer.untrusted import confined, safe_subprocess, shell

if TYPE_CHECKING:
    from PySide6.QtNetwork import QNetworkAccessManager, QNetworkReply

    from explorer.window.desktop_notifications import DesktopNotifications
    from explorer.window.job_list import Job

FILE: Final = "job-hooks.json"
LARGEST: Final = 100_000
TIMEOUT_MS: Final = 10_000
LEAST_S: Final = 60.0
"""A chart, a picture or a projection that is ready sooner is not worth a message."""
_ALWAYS: Final = ("Training", "Watch", "Import", "Evaluation", "Export", "Bundle")


@dataclass(frozen=True)
class JobHooks:
    """The actions selected by the user."""

    desktop: bool = True  # Whether the desktop tells, while the window is not in front.
    command: str = ""  # A program and its words, as typed; empty for none.
    webhook: str = ""  # An address that gets a POST of JSON; empty for none.

    @property
    def problems(self) -> dict[str, str]:
        """Field -> why it is invalid."""
        reasons = {}
        try:
            arguments = shell.split(self.command)
            if arguments and _program(arguments[0]) is None:
                reasons["command"] = f"There is no program “{arguments[0]}”. Write its full path."
        except ValueError as error:
            reasons["command"] = f"The command cannot be read: {error}. Close its quotes."
        url = QUrl(self.webhook, QUrl.ParsingMode.StrictMode)
        if self.webhook and not (url.isValid() and url.scheme() in ("https", "http") and url.host()):
            reasons["webhook"] = "Write an address that begins with https:// or http://."
        return reasons


def read(folder: Path) -> JobHooks:
    """Read the settings; only desktop notifications if they are missing or invalid."""
    try:
        document = json.loads(confined.read(folder, FILE, LARGEST))
        kinds = {each.name: type(getattr(JobHooks(), each.name)) for each in fields(JobHooks)}
        return JobHooks(
            **{name: document[name] for name, kind in kinds.items() if isinstance(document.get(name), kind)}
        )
    except (OSError, ValueError, AttributeError, RecursionError):
        return JobHooks()


def write(folder: Path, hooks: JobHooks) -> None:
    """Save the settings.

    Raises:
        OSError: The folder cannot be written to.
    """
    confined.make_folder(folder.parent, folder.name)
    confined.write(folder, FILE, json.dumps(asdict(hooks)).encode())


class JobHookRunner(QObject):
    """Runs the selected actions when a job has finished or failed."""

    failed = Signal(str)  # A sentence: what could not be done, and why.

    def __init__(
        self, desktop: DesktopNotifications, workspace: Path, folder: Path, parent: QObject, *, runs: bool = True
    ) -> None:
        """Read this user's settings; without `runs` only the desktop is notified."""
        super().__init__(parent)
        self._desktop, self._workspace, self._folder, self._runs = desktop, workspace, folder, runs
        self.hooks = read(folder)
        self._children: list[subprocess.Popen[bytes]] = []
        self._network: QNetworkAccessManager | None = None

    def choose(self, hooks: JobHooks) -> None:
        """Save the user's selection."""
        self.hooks = hooks
        try:
            write(self._folder, hooks)
        except OSError as error:
            self.failed.emit(f"{self._folder / FILE} could not be written: {error.strerror}. It holds for this window.")

    def job_ended(self, job: Job) -> None:
        """Handle the end of a job; one canceled by the user is not reported."""
        if job.state == "cancelled" or (job.kind not in _ALWAYS and job.took_s < LEAST_S):
            return
        if self.hooks.desktop:
            self._desktop.show_message(*ended_words(job), warns=job.state == "failed")
        if not self._runs or self.hooks.problems:
            return
        if self.hooks.command:
            self._start(job)
        if self.hooks.webhook:
            self._post(job)

    def _start(self, job: Job) -> None:
        program, *arguments = shell.split(self.hooks.command)
        facts = {f"CONTRASTIVE_JOB_{name.upper()}": _plain(str(value)) for name, value in self._facts(job).items()}
        self._children = [child for child in self._children if child.poll() is None]
        null = subprocess.DEVNULL
        try:
            command = [_program(program) or program, *arguments]
            self._children.append(safe_subprocess.start(command, more=facts, stdin=null, stdout=null, stderr=null))
        except OSError as error:
            self.failed.emit(f"The command for ended jobs could not start: {error.strerror or error}.")

    def _post(self, job: Job) -> None:
        from PySide6.QtNetwork import QNetworkAccessManager, QNetworkRequest

        self._network = self._network or QNetworkAccessManager(self)
        request = QNetworkRequest(QUrl(self.hooks.webhook))
        request.setHeader(QNetworkRequest.KnownHeaders.ContentTypeHeader, "application/json")
        # Another address than the one that was typed gets nothing.
        manual = QNetworkRequest.RedirectPolicy.ManualRedirectPolicy
        request.setAttribute(QNetworkRequest.Attribute.RedirectPolicyAttribute, manual.value)
        request.setTransferTimeout(TIMEOUT_MS)
        facts = self._facts(job)
        title, text = ended_words(job)
        reply = self._network.post(request, json.dumps({**facts, **message(f"{title} {text}".strip())}).encode())
        # Nothing of the answer's body is of use, and some have no end.
        reply.readyRead.connect(reply.abort)
        reply.finished.connect(partial(self._posted, reply))

    def _posted(self, reply: QNetworkReply) -> None:
        from PySide6.QtNetwork import QNetworkReply, QNetworkRequest

        status = reply.attribute(QNetworkRequest.Attribute.HttpStatusCodeAttribute)
        accepted = isinstance(status, int) and 200 <= status < 300
        if reply.error() != QNetworkReply.NetworkError.NoError and not accepted:
            self.failed.emit(f"The webhook for ended jobs did not answer: {reply.errorString()}.")
        reply.deleteLater()

    def _facts(self, job: Job) -> dict[str, str | float]:
        return {
            "kind": job.kind,
            "title": job.title,
            "state": job.state,
            "reason": job.note,
            "seconds": round(job.took_s, 1),
            "workspace": str(self._workspace),
        }


def message(text: str) -> dict[str, Any]:
    """Return the fields in which chat services expect a message; its text calls nobody and makes no link there.

    Slack and Mattermost show `text`, in which `<`, `>` and `&` are control characters (Slack, *Formatting text for app
    surfaces*). Discord shows `content`, and `allowed_mentions` says whom it may call. Both make a link of an address,
    and of a title in brackets.
    """
    quiet = re.sub(r"@|:(?=//)|\](?=\()", "\\g<0>\N{ZERO WIDTH SPACE}", text)
    escaped = quiet.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    content = re.sub(r"([\\`*_~|<>\[\]#-])", r"\\\1", quiet)
    return {"text": escaped, "content": content, "allowed_mentions": {"parse": []}}


def ended_words(job: Job) -> tuple[str, str]:
    """Return the outcome of a job, and how long it took or why it failed."""
    if job.state == "failed":
        return f"{job.kind} failed: {job.title}", job.note
    return f"{job.kind} finished: {job.title}", f"It took {duration(job.took_s)}."


class JobHooksSheet(Sheet):
    """A dialog for the actions when a job ends."""

    chosen = Signal(object)  # The `JobHooks`.

    def __init__(self, hooks: JobHooks, parent: QWidget | None = None) -> None:
        super().__init__("Notifications", "Save", parent)
        self.setObjectName("hooks-sheet")
        self.desktop = QCheckBox("Show a message of the desktop while the window is not in front")
        self.desktop.setObjectName("hooks-desktop")
        self.desktop.setChecked(hooks.desktop)
        self.command = QLineEdit(hooks.command, objectName="hooks-command", accessibleName="Run a command")
        self.command.setPlaceholderText("notify-send done")
        self.webhook = QLineEdit(hooks.webhook, objectName="hooks-webhook", accessibleName="Post to a webhook")
        self.webhook.setPlaceholderText("https://…")
        self.form.addRow("", self.desktop)
        self.form.addRow("Run a command", self.command)
        self.form.addRow("Post to a webhook", self.webhook)
        for line in (self.command, self.webhook):
            line.setMinimumWidth(380)
            line.textChanged.connect(self._check)
        self._check()

    @property
    def hooks(self) -> JobHooks:
        """The settings in the dialog."""
        return JobHooks(self.desktop.isChecked(), self.command.text().strip(), self.webhook.text().strip())

    def accept(self) -> None:
        """Save the settings if they are valid."""
        if not self.hooks.problems:
            self.chosen.emit(self.hooks)
            super().accept()

    def _check(self) -> None:
        problems = self.hooks.problems
        for name, line in (("command", self.command), ("webhook", self.webhook)):
            theme.set_invalid(line, name in problems)
        self.show_message(
            " ".join(problems.values())
            or "The command is not run by a shell. The variables CONTRASTIVE_JOB_TITLE, _KIND, _STATE, _REASON, "
            "_SECONDS and _WORKSPACE describe the job; the webhook gets the same as JSON. Both are kept for this user, "
            "not in the workspace.",
            wrong=bool(problems),
        )


def _program(name: str) -> str | None:
    path = Path(name).expanduser()
    return str(path) if path.is_absolute() and path.is_file() else safe_subprocess.find(name)


def _plain(value: str) -> str:
    """Remove control characters, because variables cannot contain NUL, and line ends might end what reads them."""
    return "".join(sign for sign in value if sign.isprintable())
