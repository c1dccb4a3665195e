"""What the address of a place says: `ssh://user@host:22/opt/python`, `slurm://host`, `ray://host:8265`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from trainer.errors import UserError

INSTALL_FOLDER: Final = "~/.local/share/contrastive-explorer"
"""Where training is installed on another computer, unless another folder is named."""
KINDS: Final = ("ssh", "slurm", "ray")
OPTIONS: Final = {
    "ssh": ("workspace", "config", "prologue"),
    "slurm": ("workspace", "config", "partition", "gpus", "cpus", "time", "account", "prologue", "container"),
    "ray": ("storage", "cpus", "gpus"),
}
"""Kind -> what may follow a `?`."""
_FLAG: Final = re.compile(r"[a-z][a-z-]{1,30}")
_FLAG_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f]{0,200}")
"""No shell reads it; nothing for a flag that takes none: `exclusive`."""
_OWN_FLAGS: Final = (
    "array", "batch", "chdir", "error", "export", "export-file", "get-user-env", "help", "input", "job-name",
    "no-requeue", "open-mode", "output", "parsable", "requeue", "signal", "test-only", "usage", "version", "wait",
    "wrap",
)  # fmt: skip
"""Of sbatch, which are set here, or would let the job be another one."""
_PORTS: Final = {"ssh": None, "slurm": None, "ray": 8265}
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,39}")
# A host or user that begins with a dash would be an option of ssh.
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:]{2,45}")
_USER: Final = re.compile(r"[A-Za-z0-9_][\w.@-]{0,63}")
_WORD: Final = re.compile(r"[A-Za-z0-9_][\w.:,-]{0,99}")
_PATH: Final = re.compile(r"(~/|/)[^\x00-\x1f\x7f]{1,500}")
_PATHS: Final = ("workspace", "config", "storage", "container")
_LINES: Final = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f]{1,4000}")
_STORE: Final = re.compile(r"(s3|gs)://[A-Za-z0-9][A-Za-z0-9.-]{1,62}(/(?!\.)[\w.=-]{1,200})*/?")


class PlaceError(UserError):
    """A place cannot do what it is asked to; the message says why and what to do."""


class OutOfReach(PlaceError):
    """A place does not answer at present: nothing is known of what it does."""


def is_sbatch_flag(name: str) -> bool:
    """Return whether a flag of sbatch is passed to it as it is: `qos`, `mem`, `constraint`, `nodes`, `exclude`."""
    return bool(_FLAG.fullmatch(name)) and name not in (*OPTIONS["slurm"], *_OWN_FLAGS)


@dataclass(frozen=True)
class RemoteHost:
    """A computer, or several, that trains runs."""

    name: str
    kind: str  # One of `KINDS`.
    hostname: str  # Its name or number; empty for a SLURM of this computer.
    user: str = ""  # There; empty: as the ssh configuration says.
    port: int | None = None  # None: the usual one.
    python: str = "python3"  # The interpreter there that has torch.
    # Of `OPTIONS`; `prologue` are lines of bash that run before every command there, `container` is the image
    # that a job of SLURM trains in.
    options: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address, as `parse` reads it."""
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        port = f":{self.port}" if self.port is not None else ""
        python = self.python if self.python.startswith("/") else ""
        more = "&".join(f"{name}={_written(name, value)}" for name, value in self.options.items())
        return f"{self.kind}://{user}{host}{port}{python}{'?' + more if more else ''}"

    def changed(self, **options: str) -> RemoteHost:
        """Return the place with other options; one that is changed to nothing is left out.

        Raises:
            PlaceError: They cannot be, or places of this kind have none such.
        """
        bare = replace(self, options={})
        after = {name: value for name, value in (self.options | options).items() if value or name not in options}
        more = "&".join(f"{name}={quote(value)}" for name, value in after.items())
        return parse(self.name, f"{bare.address}?{more}")


def parse(name: str, address: str) -> RemoteHost:
    """Return the place that an address names.

    Raises:
        PlaceError: It is no address, or the name cannot be one.
    """
    if not _NAME.fullmatch(name):
        raise PlaceError(f"{name[:60]!r} cannot name a place: write at most 40 letters, digits, dots, - or _.")
    try:
        parts = urlsplit(address)
        host, port = unquote(parts.hostname or ""), parts.port
    except ValueError as error:
        raise PlaceError(f"{address[:200]!r} is not an address of a place ({error}). {_EXAMPLES}") from error
    kind, user, path = parts.scheme, unquote(parts.username or ""), unquote(parts.path)
    if kind not in KINDS:
        raise PlaceError(f"{address[:200]!r} is not an address of a place. {_EXAMPLES}")
    if parts.password is not None:
        raise PlaceError("A password has no place in an address: ssh uses keys. Set one up with ssh-copy-id.")
    if not (_HOST.fullmatch(host) or (kind == "slurm" and not host)) or (user and not _USER.fullmatch(user)):
        raise PlaceError(f"{address[:200]!r} names no host or user that can be. {_EXAMPLES}")
    if path not in ("", "/") and not _PATH.fullmatch(path):
        raise PlaceError(f"{path[:200]!r} is not a path of a Python interpreter. {_EXAMPLES}")
    python = path if path not in ("", "/") else "python3"
    return RemoteHost(name, kind, host, user, port or _PORTS[kind], python, _options(kind, parts.query))


def parse_folder(address: str) -> tuple[RemoteHost, str]:
    """Return the computer and the folder of `ssh://[user@]host[:port]/path[?python=PATH&config=PATH]`.

    The place is named after its host; `bindings.located` looks for one that the user has named.

    Raises:
        PlaceError: It is no such address.
    """
    try:
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query))
    except ValueError as error:
        raise PlaceError(f"{address[:200]!r} is not an address of a folder ({error}). {_FOLDER_EXAMPLE}") from error
    path = unquote(parts.path)
    path = path.removeprefix("/") if path.startswith("/~/") else path
    if parts.scheme != "ssh" or not _PATH.fullmatch(path):
        raise PlaceError(f"{address[:200]!r} is not an address of a folder. {_FOLDER_EXAMPLE}")
    if other := sorted({*options} - {"python", "config"}):
        raise PlaceError(f"{other[0][:60]!r} is not an option of a folder. {_FOLDER_EXAMPLE}")
    config = f"?config={options['config']}" if "config" in options else ""
    host = parse("host", f"ssh://{parts.netloc}{options.get('python', '')}{config}")
    return replace(host, name=re.sub(r"[^\w.-]", "-", host.hostname)[:40].lstrip("-._") or "host"), path


def prologue(lines: str) -> str:
    """Return lines of bash that run a place's own with what a login has, and end with words where one fails."""
    trap = "trap 'echo \"the line of the prologue failed: $BASH_COMMAND\" >&2' ERR"
    return f"test ! -r /etc/profile || . /etc/profile\n{trap}\nset -e\n{lines}\nset +e\ntrap - ERR\n"


def _options(kind: str, query: str) -> dict[str, str]:
    options = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        is_flag = kind == "slurm" and is_sbatch_flag(name)
        if name not in OPTIONS[kind] and not is_flag:
            flags = ", and the flags of sbatch but those that decide what is started" if kind == "slurm" else ""
            raise PlaceError(
                f"{name[:60]!r} is not an option of {kind}://. There are: {', '.join(OPTIONS[kind])}{flags}."
                f"{' Start a run for each task: every run is a job of its own.' if name == 'array' else ''}"
            )
        rule = _LINES if name == "prologue" else _PATH if name in _PATHS else _FLAG_VALUE if is_flag else _WORD
        if not rule.fullmatch(value) and not (name == "storage" and _STORE.fullmatch(value)):
            what = {
                _PATH: "a path that begins with / or ~/", _LINES: "lines of a shell", _FLAG_VALUE: "one short line",
            }.get(rule, "a single word")  # fmt: skip
            what += ", or s3://bucket/folder or gs://bucket/folder" if name == "storage" else ""
            raise PlaceError(f"{name}={value[:100]!r} cannot be: write {what}.")
        options[name] = value
    if kind == "ray" and "storage" not in options:
        raise PlaceError(
            "A Ray cluster needs a folder that its nodes and this computer both see, for the runs: "
            "ray://HOST:8265?storage=/shared/folder, or storage=s3://bucket/folder."
        )
    return options


def _written(name: str, value: str) -> str:
    return quote(value, safe="/:,~@[]") if name == "prologue" or is_sbatch_flag(name) else value


_FOLDER_EXAMPLE: Final = (
    "Write ssh://user@host/path/of/the/folder, with ?python=/path/to/python where that is not python3."
)
_EXAMPLES: Final = (
    "Write ssh://user@host[:port][/path/to/python], slurm://user@host[/path/to/python] or "
    "ray://host:8265?storage=/shared/folder."
)
