"""The helper process that decodes untrusted images with limited memory, time and imports.

`python -m trainer.images.helper MEMORY SECONDS` reads jobs (`trainer.images.decoder` writes them), a line of JSON
each, and answers a line for every picture. Pixels go to the file that the job names. It ends with its input.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import UInt8
from PIL import AvifImagePlugin, Image

from trainer.images.decoding import UnreadableImage, open_image, read_image
from trainer.images.preprocessing import Preprocessing
from trainer.untrusted import confined

Answer = dict[str, Any]


def main(memory: int, seconds: int) -> None:
    """Serve jobs until the input ends.

    Args:
        memory: Bytes that this process may have, itself included.
        seconds: After which one picture ends this process, should whoever started it be unable to.
    """
    _limit(memory)
    # Pictures are decoded side by side in several processes; a thread's own heap would count to the limit.
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    # A library that prints must not break the answers, nor fill the disk.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

    def report(answer: Answer) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    report({"ready": os.getpid()})
    for line in sys.stdin:
        _do(json.loads(line), report, seconds)


def _limit(memory: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows; macOS refuses
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        # A picture that crashes a decoder must not leave a file of a gigabyte.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _do(job: dict[str, Any], report: Callable[[Answer], None], seconds: int) -> None:
    """Report for each place of the job, in order, an error or that its pixels are written."""
    alarm = getattr(signal, "alarm", lambda seconds: None)  # its default ends the process, whatever C code runs
    preprocessing = job["preprocessing"] and Preprocessing.from_json(job["preprocessing"])
    try:
        with _opened(job["file"]) as file:
            for number, text in enumerate(job["places"]):
                alarm(seconds)
                answer, pixels = _decoded(text, job["size"], uncropped=job["whole"], preprocessing=preprocessing)
                if pixels is not None and file is not None:
                    _put(file, job["offset"] + number * job["size"] ** 2 * 3, pixels)
                report(answer)
                alarm(0)
            if job["sync"] and file is not None:
                os.fsync(file.fileno())
        report({"done": True})
    except OSError as error:
        report({"failed": error.errno or 0, "words": error.strerror or str(error)})


def _opened(name: str | None) -> contextlib.AbstractContextManager[BinaryIO | None]:
    if not name:
        return contextlib.nullcontext()
    path = Path(name)
    return confined.open_file(path.parent, path.name, "rb+")


def _decoded(
    text: str, size: int, *, uncropped: bool, preprocessing: Preprocessing | None
) -> tuple[Answer, UInt8[np.ndarray, "h w 3"] | None]:
    remarks: list[str] = []
    try:
        if uncropped:
            pixels = _fitted(text, size, remarks)
        else:
            pixels = read_image(text, size, remarks, preprocessing=preprocessing)
    except UnreadableImage as error:
        return {"reason": str(error)} | ({"starved": True} if isinstance(error.__cause__, MemoryError) else {}), None
    except MemoryError:
        return {"reason": "It needs too much memory.", "starved": True}, None
    except Exception as error:  # whatever a decoder raises beyond the many kinds that are known
        return {"reason": f"The image is damaged: {error or type(error).__name__}."}, None
    digest = hashlib.blake2b(pixels.data, digest_size=16).hexdigest()
    return {"digest": digest, "shape": pixels.shape[:2], "remarks": " ".join(remarks)}, pixels


def _fitted(text: str, edge: int, remarks: list[str]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the whole image, its longer side at most `edge`."""
    image = open_image(text, smallest=edge, remarks=remarks)
    image.thumbnail((edge, edge), Image.Resampling.BICUBIC)
    return np.array(image)


def _put(file: BinaryIO, at: int, pixels: UInt8[np.ndarray, "h w 3"]) -> None:
    file.seek(at)
    left = memoryview(pixels).cast("B")
    while left:
        left = left[file.write(left) :]


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main(int(sys.argv[1]), int(sys.argv[2]))
