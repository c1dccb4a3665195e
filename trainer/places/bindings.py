"""The places of this user, and which runs train there: `places.json` in the user's own settings.

Not in a workspace: one that was given to somebody must not make their computer connect to anything.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from trainer.config import default_paths
from trainer.places.remote_host import PlaceError, RemoteHost, parse, parse_folder
from trainer.store.elsewhere import Elsewhere, elsewhere, write_elsewhere
from trainer.store.files import make_folders, told_if_unwritable, write_text
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.documents import convert

FILE: Final = "places.json"
_FORMAT: Final = 1
_MOST_PLACES: Final = 100
_MOST_RUNS: Final = 10_000
"""Bindings that are kept; the oldest go first."""


@dataclass(frozen=True)
class Binding:
    """Where a run of this computer trains."""

    place: str  # Name of the place.
    workspace: str = ""  # Folder there.
    run: int = 0  # Its number there; 0 as long as it was not sent.
    job: str = ""  # What a queue there calls it; empty where it is a process.
    data: str = ""  # Path of the data there; empty: as configured.
    upload: bool = False  # Whether the data are sent.
    # Folder here with tars of the prepared pictures, which are sent in place of the data; empty: none.
    prepared: str = ""
    nodes: int = 0  # Of SLURM, which share the run's processes; 0: as the place says.


def hosts() -> list[RemoteHost]:
    """Return the places of this user, by name; entries that cannot be read are left out."""
    hosts = []
    for name, address in _document()["places"].items():
        try:
            hosts.append(parse(name, address))
        except (PlaceError, TypeError, AttributeError):
            continue
    return sorted(hosts, key=lambda host: host.name)


def host_of(name: str) -> RemoteHost:
    """Return the place of that name.

    Raises:
        PlaceError: There is none.
    """
    listed = hosts()
    for host in listed:
        if host.name == name:
            return host
    names = f"There are: {', '.join(host.name for host in listed)}." if listed else "There is none yet."
    raise PlaceError(f"There is no place {name[:60]!r}. {names} Add one: trainer places add NAME ssh://user@host.")


def located(address: str) -> tuple[RemoteHost, str]:
    """Return the place and the folder that `ssh://host/path` names: a place of this user by its name or address first.

    Raises:
        PlaceError: It is no such address.
    """
    host, path = parse_folder(address)
    for known_host in hosts():
        is_named = known_host.name == host.hostname and not host.user and host.port is None
        if known_host.kind == "ssh" and (is_named or _login(known_host) == _login(host)):
            return known_host, path
    return host, path


def _login(host: RemoteHost) -> tuple[str, str, int | None]:
    return host.hostname, host.user, host.port


def add(host: RemoteHost) -> None:
    """Add a place, or replace the one of that name.

    Raises:
        PlaceError: There are too many, or the settings cannot be written.
    """

    def change(document: dict[str, Any]) -> None:
        document["places"][host.name] = host.address
        if len(document["places"]) > _MOST_PLACES:
            raise PlaceError(f"There are {_MOST_PLACES} places already. Remove some: trainer places remove NAME.")

    _change(change)


def remove(name: str) -> None:
    """Remove a place; runs that train there continue, and are mirrored again once it is added again.

    Raises:
        PlaceError: There is none of that name.
    """
    host_of(name)
    _change(lambda document: document["places"].pop(name))


def bind(folder: Path, binding: Binding) -> None:
    """Let the run of this folder train at a place."""
    identity = elsewhere(folder) or Elsewhere(binding.place, secrets.token_hex(16))

    def change(document: dict[str, Any]) -> None:
        runs = document["runs"]
        runs.pop(identity.token, None)
        runs[identity.token] = asdict(binding)
        for token in list(runs)[:-_MOST_RUNS]:
            del runs[token]

    _change(change)
    if elsewhere(folder) is None:
        write_elsewhere(folder, identity)


def binding_of(folder: Path) -> Binding | None:
    """Return where the run of this folder trains; None for a run of this computer.

    Raises:
        PlaceError: It trains at a place that this user's settings do not know.
    """
    identity = elsewhere(folder)
    if identity is None:
        return None
    try:
        return convert(_document()["runs"].get(identity.token), Binding)
    except ValueError:
        if not identity.sent:
            return None
        raise PlaceError(
            f"The run trains on {identity.place!r}, which another computer or user has sent it to. What is here stays "
            "as it is; open the workspace there to see more."
        ) from None


def _change(change: Callable[[dict[str, Any]], Any]) -> None:
    document = _document()
    change(document)
    folder = default_paths.user_folder()
    with told_if_unwritable(folder / FILE, "", PlaceError):
        make_folders(folder)
        write_text(folder / FILE, json.dumps({"format": _FORMAT, **document}, indent=1) + "\n")


def _document() -> dict[str, Any]:
    try:
        document = untrusted_files.read_record(default_paths.user_folder() / FILE)
    except FileNotFoundError:
        document = {}
    except (OSError, ValueError) as error:
        raise PlaceError(
            f"{default_paths.user_folder() / FILE} cannot be read ({error}). Mend or remove it."
        ) from error
    sections = {name: document.get(name) for name in ("places", "runs")}
    return {name: value if isinstance(value, dict) else {} for name, value in sections.items()}
