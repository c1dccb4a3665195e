"""What a place has, as `trainer doctor` tells it there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.places import bindings, ssh
from trainer.places.links import workspace_there


def findings(name: str, workspace: Path) -> list[dict[str, Any]]:
    """Return the findings of the doctor of a place, each with `group`, `name`, `value`, `state` and `next`.

    Args:
        workspace: Of this computer, whose runs have a folder there.

    Raises:
        PlaceError: There is none of that name, it does not answer, or it cannot train.
    """
    host = bindings.host_of(name)
    if host.kind == "ray":
        from trainer.places.ray_jobs import doctor

        return doctor(host)
    return ssh.doctor(host, workspace_there(host, workspace))
