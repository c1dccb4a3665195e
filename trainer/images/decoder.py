"""Decode untrusted images in a helper process with limited memory and time, which protects this process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import UInt8
from msgspec import Struct

from trainer.errors import UserError
from trainer.images.decoding import UnreadableImage
from trainer.images.location import Location
from trainer.images.preprocessing import Preprocessing
from trainer.images.scratch import scratch_file
from trainer.untrusted import safe_subprocess

MEMORY: Final = 1_000_000_000
"""Bytes that a helper may have, with everything: 64 million pixels of any color mode fit."""

LIMIT_S: Final = 5.0
"""Seconds for one picture. A helper that got less than half a core is given up to three times that."""

_PATIENCE: Final = 3
_TICK_S: Final = 0.2 if sys.platform == "linux" else 0.05
"""Between two looks; on Linux the system keeps a helper to its memory, elsewhere nobody else does."""
_START_S: Final = 60.0
_LOOK_S: Final = 1.0
"""Of silence, after which it is counted how much of a core the helper gets."""


class HelperError(UserError):
    """Images cannot be decoded at all: the helper does not start."""


class Decoded(Struct, frozen=True):
    """The result of one image."""

    reason: str = ""  # Why there are no pixels, a sentence; empty if there are.
    remarks: str = ""  # What was odd about it and put right.
    digest: str = ""  # Hash of its pixels.
    shape: tuple[int, int] = (0, 0)  # Height and width in pixels.


class Decoder:
    """A helper process, started on first use and restarted when an image has ended it.

    For one thread at a time.
    """

    def __init__(self, *, limit_s: float = LIMIT_S, memory: int = MEMORY) -> None:
        self._limit_s, self._memory = limit_s, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._since: float | None = None  # of the last sign of life, while one is awaited
        self._verdict = ""  # why the watch has ended it
        self._judging = threading.Lock()
        self._starting, self._fresh = False, True

    @property
    def pid(self) -> int | None:
        """The process id of the helper, if it is running."""
        return self._process.pid if self._process else None

    def decode(
        self,
        locations: Sequence[Location | str],
        *,
        size: int,
        file: Path | None,
        offset: int = 0,
        uncropped: bool = False,
        sync: bool = False,
        preprocessing: Preprocessing | None = None,
    ) -> Generator[Decoded]:
        """Yield the result of each image, in order, after writing its pixels to the file.

        A picture that takes too long, or twice ends the process that decodes it, has that for its reason, and the
        next ones are decoded by another. An iterator that is not exhausted ends the helper.

        Args:
            size: Side of the decoded square; with `uncropped`, the longer side at most.
            file: Exists and has room: picture i is written at `offset + i * size * size * 3`. None: its pixels are not
                wanted, only what became of it.
            offset: Of the first picture, in bytes.
            uncropped: The whole picture at its own shape instead of its middle square.
            sync: The file is on the disk when the last one has been told.
            preprocessing: As in `read_image`; of its own `size`.

        Raises:
            HelperError: No helper can be started.
            OSError: The file cannot be written.
        """
        done, suspect, finished = 0, -1, False
        room = size * size * 3
        fixed: dict[str, Any] = {"size": size, "file": file and str(file.absolute()), "whole": uncropped, "sync": sync}
        fixed["preprocessing"] = preprocessing and preprocessing.to_json()
        try:
            while done < len(locations):
                self._ask(fixed | {"places": list(map(_absolute, locations[done:])), "offset": offset + done * room})
                for answer in self._answers():
                    if answer.get("starved") and not self._fresh:
                        break  # what was left of earlier pictures may have been in its way: once more
                    yield self._decoded_from(answer)
                    self._fresh = False
                    done += 1
                if finished := done == len(locations):
                    return
                if self._verdict or suspect == done:
                    yield Decoded(reason=self._why())
                    done += 1
                else:
                    suspect = done  # it may have been ended by something else: once more
                self._end()
            finished = True
        finally:
            if not finished:
                self._end()

    def close(self) -> None:
        """End the helper."""
        self._end()

    def _ask(self, job: dict[str, Any]) -> None:
        self._verdict = ""
        process = self._process or self._start()
        with contextlib.suppress(OSError):  # it has ended: so do its answers
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()

    def _answers(self) -> Iterator[dict[str, Any]]:
        """Yield one response per image, until the job is complete or the helper has ended."""
        while answer := self._awaited():
            if answer.get("done"):
                return
            if "failed" in answer:
                raise OSError(answer["failed"], answer["words"])
            yield answer

    def _awaited(self) -> dict[str, Any]:
        """Return the next line of the helper; empty if it ended or timed out."""
        with self._judging:
            self._since = time.monotonic()
        answer = _parsed(self._process.stdout.readline())
        with self._judging:
            self._since = None
            if answer:
                # It was in time after all; if the helper was killed for it, the next one is tried again.
                self._verdict = ""
        return answer

    def _decoded_from(self, answer: dict[str, Any]) -> Decoded:
        if answer.get("starved"):
            return Decoded(reason=self._too_large())
        if reason := answer.get("reason"):
            return Decoded(reason=reason)
        return Decoded("", answer["remarks"], answer["digest"], tuple(answer["shape"]))

    def _start(self) -> subprocess.Popen[bytes]:
        # Much later than the watch: it ends a helper whose program has died.
        last_resort = round(2 * _PATIENCE * self._limit_s) + 1
        for _ in range(2):  # it may have been ended by something else: once more
            with tempfile.TemporaryFile() as errors:
                process = safe_subprocess.start_helper(
                    "trainer.images.helper", str(self._memory), str(last_resort), errors=errors
                )
                self._process, self._starting, self._fresh = process, True, True
                name = f"watch-{process.pid}"
                threading.Thread(target=self._watch, args=(process,), name=name, daemon=True).start()
                if self._awaited().get("ready"):
                    self._starting = False
                    return process
                self._end()
                errors.seek(0)
                reason = errors.read().decode(errors="replace").strip().rpartition("\n")[2] or "it ended immediately"
        raise HelperError(
            f"The image decoding process cannot be started: {reason}. Start the program again; if that does not "
            "help, install it again."
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            with contextlib.suppress(OSError):  # a job that it did not live to read
                process.stdin.close()
            process.stdout.close()

    def _why(self) -> str:
        """Return why the image that ended the helper has no pixels."""
        if self._verdict:
            return self._verdict
        code = self._process.wait() if self._process else 0
        by = f" by {signal.Signals(-code).name}" if -code in set(signal.Signals) else ""
        return f"Decoding it crashed the decoding process{by}; the file is damaged, or made to do so."

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """End the helper when an image exceeds its time limit; runs in its own thread."""
        looked, began, ran = 0.0, 0.0, 0.0
        while process is self._process and process.poll() is None:
            time.sleep(_TICK_S)
            since, now = self._since, time.monotonic()
            # Elsewhere than on Linux, memory is watched here and not by the system.
            if since is None or (now - since < _LOOK_S and sys.platform == "linux"):
                continue
            cpu_s, running, memory = _gauged(process.pid)
            if looked != since:
                looked, began, ran = since, now, cpu_s
            limit_s = _START_S if self._starting else self._limit_s
            starved = running and cpu_s - ran < (now - began) / 2 and now - since < _PATIENCE * limit_s
            if memory > self._memory:
                self._condemn(process, since, self._too_large())
            elif now - since >= limit_s and not starved:
                self._condemn(process, since, f"Decoding it took more than {self._limit_s:.2g} seconds.")

    def _condemn(self, process: subprocess.Popen[bytes], since: float, verdict: str) -> None:
        with self._judging:
            if self._since == since:
                self._verdict = verdict
                process.kill()

    def _too_large(self) -> str:
        return f"It takes more than the {self._memory / 1e9:.1g} GB of memory allowed for an image."


def _absolute(image_location: Location | str) -> str:
    """Return the text of a place with an absolute path, for a process in another folder."""
    return os.path.join(os.getcwd(), str(image_location))


def _parsed(line: bytes) -> dict[str, Any]:
    """Parse a response; empty for a line truncated when the helper ended."""
    try:
        return json.loads(line)
    except ValueError:
        return {}


def _gauged(pid: int) -> tuple[float, bool, int]:
    """Return a process's CPU seconds, whether it is runnable, and its memory in bytes."""
    import psutil

    try:
        process = psutil.Process(pid)
        times = process.cpu_times()
        return times.user + times.system, process.status() == psutil.STATUS_RUNNING, process.memory_info().rss
    except psutil.Error:
        return 0.0, False, 0


idle_decoders: list[Decoder] = []
_idle_lock = threading.Lock()
_in_turn = threading.Lock()
"""Single pictures are read one after the other: a helper for each thread that asks would start more than decode."""


@contextlib.contextmanager
def borrowed() -> Iterator[Decoder]:
    """Provide a decoder for one thread; one is kept for reuse, because a helper takes 0.5 s to start."""
    with _idle_lock:
        decoder = idle_decoders.pop() if idle_decoders else Decoder()
    try:
        yield decoder
    finally:
        with _idle_lock:
            keep = not idle_decoders
            if keep:
                idle_decoders.append(decoder)
        if not keep:
            decoder.close()


def _forget() -> None:
    """Forget the helper after a fork, because it belongs to the parent process."""
    global _idle_lock, _in_turn
    idle_decoders.clear()
    _idle_lock, _in_turn = threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def read_pictures(
    locations: Sequence[Location | str], size: int, preprocessing: Preprocessing | None = None
) -> tuple[UInt8[np.ndarray, "n size size 3"], list[Decoded]]:
    """Return the images as `read_image` does, decoded in a helper; black where `Decoded.reason` says why.

    Raises:
        HelperError: No helper can be started.
        OSError: There is no room for the pixels.
    """
    with scratch_file(len(locations) * size * size * 3) as file, _in_turn, borrowed() as decoder:
        answers = list(decoder.decode(locations, size=size, file=file, preprocessing=preprocessing))
        pixels = np.fromfile(file, np.uint8).reshape(len(locations), size, size, 3)
    return pixels, answers


def read_picture(image_location: Location | str, edge: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return the whole image, its longer side at most `edge` pixels, decoded in a helper.

    Raises:
        UnreadableImage: As `open_image`; or it took too much time or memory.
        HelperError: No helper can be started.
        OSError: There is no room for the pixels.
    """
    with scratch_file(edge * edge * 3) as file, _in_turn, borrowed() as decoder:
        (answer,) = decoder.decode([image_location], size=edge, file=file, uncropped=True)
        if answer.reason:
            raise UnreadableImage(answer.reason)
        height, width = answer.shape
        return np.fromfile(file, np.uint8, height * width * 3).reshape(height, width, 3)
