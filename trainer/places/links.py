"""How a run is sent to each kind of place, started there, and read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from trainer import config
from trainer.places import ssh
from trainer.places.bindings import Binding
from trainer.places.channel import Channel, ChannelSource
from trainer.places.remote_host import PlaceError, RemoteHost, is_sbatch_flag
from trainer.places.source import RunSource
from trainer.store import ownership

Say = Callable[[str], None]
_QUEUE: Final = ("partition", "gpus", "cpus", "time", "account", "prologue", "container")


class Link(Protocol):
    """A connection to a place for one run; made anew after `OutOfReach`."""

    def send(self, run: config.Run, binding: Binding, token: str, say: Say) -> Binding:
        """Make the run there, without starting it, and return what is known of it; a repeated call makes no second."""

    def start(self, binding: Binding) -> Binding:
        """Start the run there, or let it continue; nothing where it trains."""

    def source(self, binding: Binding) -> RunSource:
        """Return where a mirror of the run reads from."""

    def close(self) -> None:
        """End the connection."""


class SshLink:
    """A place by ssh, where a run is a process or a job of SLURM."""

    def __init__(self, host: RemoteHost, workspace: Path) -> None:
        self._place, self._workspace = host, workspace
        self._channel: Channel | None = None
        self._facts: ssh.SshFacts | None = None

    def send(self, run: config.Run, binding: Binding, token: str, say: Say) -> Binding:
        """Check the place, bring code and data there, and make the run.

        Raises:
            OutOfReach: It does not answer.
            PlaceError: It cannot train the run.
        """
        say(f"checking {self._place.name}")
        facts = self._checked()
        folder = workspace_there(self._place, self._workspace)
        if binding.prepared:
            run = dataclasses.replace(run, data=config.Shards(path=binding.prepared, encoding="utf-8"))
        data = _data_there(run, binding)
        if data is not None and data is not run.data:  # by reference: it has to be there before anything is sent
            self._check_there(facts, data)
        say(f"sending the code to {self._place.name}")
        ssh.send_code(self._place, facts)
        if binding.upload:
            data = self._upload(run, ssh.inside(facts, folder), say)
        sent_run = run if data is None else dataclasses.replace(run, data=data)
        head, _ = self._asked(folder).ask("create", config=config.to_toml(sent_run), token=token)
        number = head.get("run")
        if type(number) is not int or number < 1:
            raise PlaceError(f"{self._place.name} did not return the number of the run.")
        return dataclasses.replace(binding, workspace=folder, run=number)

    def start(self, binding: Binding) -> Binding:
        """Start the run, or queue it in SLURM."""
        queue = None
        if self._place.kind == "slurm":
            options = self._place.options
            chosen = {name: value for name, value in options.items() if name in _QUEUE or is_sbatch_flag(name)}
            chosen |= {"nodes": str(binding.nodes)} if binding.nodes else {}
            queue = chosen or {"gpus": ""}
        elif binding.nodes > 1:
            raise PlaceError(f"{self._place.name} is one computer: several nodes are for SLURM. Leave out --nodes.")
        head, _ = self._asked(binding.workspace).ask("start", run=binding.run, queue=queue)
        return dataclasses.replace(binding, job=str(head.get("job") or "")[:40])

    def source(self, binding: Binding) -> RunSource:
        """Return the run's folder there."""
        return ChannelSource(self._asked(binding.workspace), binding.run)

    def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _checked(self) -> ssh.SshFacts:
        if self._facts is None:
            self._facts = ssh.check(self._place)
        return self._facts

    def _asked(self, folder: str) -> Channel:
        if self._channel is None:
            facts = self._checked()
            ssh.send_code(self._place, facts)
            self._channel = ssh.open_channel(self._place, facts, folder)
        return self._channel

    def _check_there(self, facts: ssh.SshFacts, data: config.Data) -> None:
        path = str(getattr(data, "path", ""))
        try:
            ssh.check_path(self._place, ssh.inside(facts, path))
        except PlaceError as error:
            if "refused" not in str(error):
                raise
            raise PlaceError(
                f"{self._place.name} has no {path}. Name where the data lie there (--data-there PATH), or send them "
                "(--upload)."
            ) from error

    def _upload(self, run: config.Run, folder: str, say: Say) -> config.Data:
        """Bring the data there and return how they are named there."""
        data, target = run.data, f"{folder}/sent"
        for name in ("path", "heldout_path"):
            path = getattr(data, name, "")
            if not path:
                continue
            source = Path(path)
            if not source.exists():
                raise PlaceError(f"{path} is not on this computer, so it cannot be sent.")
            code = ownership.seal(f"sent {source.absolute()}")[:12]
            where = f"{target}/{code}"
            ssh.upload(self._place, source.absolute(), where, partial(_say_share, say, source.name))
            data = _with(data, **{name: f"{where}/{source.name}"})
        return data


def _with(data: Any, **changes: str) -> Any:
    return dataclasses.replace(data, **changes)


def _say_share(say: Say, name: str, share: float) -> None:
    say(f"sending {name}: {100 * share:.0f} %")


def workspace_there(host: RemoteHost, workspace: Path) -> str:
    """Return the folder there that holds the runs of this workspace, the same at every call."""
    chosen = host.options.get("workspace")
    return chosen or f"~/.local/share/contrastive-explorer-from/{ownership.seal(f'sent {workspace}')[:16]}"


def _data_there(run: config.Run, binding: Binding) -> config.Data | None:
    """Return the data by their path there; None where there is nothing to be found or sent.

    Raises:
        PlaceError: They cannot be elsewhere.
    """
    data = run.data
    if not hasattr(data, "path"):
        if binding.data or binding.upload:
            raise PlaceError(f"{config.data_name(data)} has no path: it is made or downloaded where the run trains.")
        return None
    if binding.upload:
        if not isinstance(data, config.Folder | config.ClassFolder | config.Shards):
            raise PlaceError(
                "Only folders and tars are sent: the pictures of a table may lie anywhere. Copy them there and name "
                "the table: --data-there PATH."
            )
        return data
    return _with(data, path=binding.data or data.path)
