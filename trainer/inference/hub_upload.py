"""Push an exported folder to a hub by the hub's own client, on request."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainer.errors import UserError
from trainer.untrusted.files import refusal_of_downloads

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def push(folder: Path, repository: str, *, public: bool = False, client: Callable[[], HfApi] | None = None) -> str:
    """Upload the files of an exported folder and return the address of the commit.

    Args:
        folder: Where the model was written.
        repository: `OWNER/NAME`; made if it is not there.
        public: Whether a repository that is made is public.
        client: Makes the client; None: that of `huggingface_hub`, with the token that its own login has kept.

    Raises:
        UserError: The name is none, the hub refuses or cannot be reached; the message has its words.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise UserError(f"--push {repository!r}: name a repository of the hub, OWNER/NAME.")
    if refusal := refusal_of_downloads():
        raise UserError(refusal)
    try:
        api = (client or hub_client)()
        api.create_repo(repository, private=not public, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository, folder_path=str(folder), commit_message="Export of Contrastive Explorer"
        )
    except Exception as error:  # whatever the client and its network raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise UserError(
            f"{folder} was written, but not pushed to {repository}: {said.rstrip('.')}. Log in once by "
            "`hf auth login`, then push the folder again."
        ) from error
    return str(getattr(commit, "commit_url", commit))


def hub_client() -> HfApi:
    """Return the client of `huggingface_hub`."""
    from huggingface_hub import HfApi

    return HfApi()
