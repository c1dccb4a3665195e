"""A rank that does not lead: it makes the updates that rank 0 calls for, and writes nothing but lines of the log."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trainer import config, device, ranks
from trainer.checkpoints import checkpoint
from trainer.data.tokenizers import read_tokenizer
from trainer.errors import UserError
from trainer.pretrained import read_architecture
from trainer.pretrained.peft_layout import kept_adapter
from trainer.training.session import FitError, TrainingSession, load_splits
from trainer.training.text_log import TextLog
from trainer.untrusted import files as untrusted_files

BEGINS: Final = "begins"
"""Under this rank 0 tells the step of the checkpoint from which all go on; it is written by then."""


def follow(
    folder: Path, workspace: Path, shared: ranks.Ranks, *, bring: Callable[[int], None] = lambda step: None
) -> None:
    """Make the updates of a run together with rank 0, until that dismisses this rank or is gone.

    No database is opened: on another computer that sees the folders, it could not be.

    Args:
        workspace: Folder of its workspace, where pairs are prepared.
        bring: Called with the step of the checkpoint before anything of the run is read: brings it here, where rank 0
            keeps it in a store.

    Raises:
        RankError: Another rank is gone.
        UserError: This one cannot go on, which the others are told.
    """
    text_log = TextLog(folder / "log.txt")
    try:
        # Until rank 0 has prepared everything there is nothing to read.
        begin = shared.announced(BEGINS)
        if not begin:
            return
        step = int(begin)
        bring(step)
        training = _session(folder, workspace, shared)
        loaded = checkpoint.load(folder / "checkpoints" / f"step_{step:06d}")
        checkpoint.restore(loaded, modules=training.modules, optimizer=training.optimizer)
        training.step = step
        _leave_signals_to_rank_0()
        while shared.is_called():
            training.update()
            for sentence in training.news():
                text_log.say(f"rank {shared.rank}: {sentence}")
    except Exception as error:
        if not isinstance(error, UserError):
            text_log.write(traceback.format_exc())
        text_log.say(f"rank {shared.rank} ends: {error}")
        raise


def _session(folder: Path, workspace: Path, shared: ranks.Ranks) -> TrainingSession:
    """Return the session that rank 0 has, on this rank's device, from what rank 0 has prepared.

    Raises:
        FitError: The training pairs are not those that rank 0 has.
    """
    run = config.from_toml(untrusted_files.read_text(folder / "config.toml"), source="config.toml")
    facts = untrusted_files.read_record(folder / "run.json", untrusted_files.MOST_FACTS).get("facts") or {}
    where = shared.device_of(device.choose(run.device))
    device.be_polite(where)
    sizes = read_architecture(run.model, folder)
    splits = load_splits(run, sizes, workspace, lambda share, note: shared.check_peers(), facts=facts)
    if facts.get("fingerprint", splits.train.fingerprint) != splits.train.fingerprint:
        raise FitError("The training pairs are not those that rank 0 reads. Check the path on this computer.")
    tokenizer = read_tokenizer(untrusted_files.read_text(folder / "tokenizer.json", untrusted_files.MOST_TOKENIZER))
    device.keep_freed_memory(where)
    return TrainingSession(
        run, splits.train, tokenizer, where, built_from=sizes, shared=shared, adapter=kept_adapter(folder)
    )


def _leave_signals_to_rank_0() -> None:
    """Ignore SIGTERM and Ctrl-C: rank 0 hears them too, saves, and dismisses this rank."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
