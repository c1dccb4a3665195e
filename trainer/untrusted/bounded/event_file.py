"""Read the records of an event file of TensorBoard, in the helper process.

A record is its length, a checksum of the length, its content and a checksum of the content (tensorflow.org, TFRecord).
TensorBoard's Python reader ends at the first damaged record, its data server does not look at the checksums; here a
damaged record is left out, counted, and the next one is read.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trainer.untrusted.bounded.tracker_rows import (
    LATER,
    MOST_STEP,
    RESTART,
    SETTING,
    SKIPPED,
    TrackerRow,
    number_row,
    remark,
    unread,
)

_HEADER: Final = struct.Struct("<QI")
_CHECKSUM: Final = struct.Struct("<I")
_MOST_RECORD: Final = 64 << 20
_SMALL: Final = 1 << 16
"""Bytes of a record whose checksum is always computed; it takes a second for a megabyte, and pictures have many."""
_SESSION_LOG_VERSION: Final = 2.0
"""From this version of the format, a restart is an event of its own."""
_VERSION: Final = "brain.Event:"
_MOST_KINDS: Final = 40
_SCALARS: Final = "scalars"
_SETTINGS: Final = "hparams"


@dataclass
class _Records:
    """The contents of the records of a file whose checksums are right, or not yet compared.

    Attributes:
        size, read: Bytes of the file, and of the records that were yielded.
        damaged: Parts of it that were left out.
    """

    path: Path
    size: int = 0
    read: int = 0
    damaged: int = 0

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        """Yield content and checksum of each record."""
        with self.path.open("rb") as file:
            self.size = file.seek(0, 2)
            start = 0
            while start + _HEADER.size <= self.size:
                file.seek(start)
                length, checksum = _HEADER.unpack(header := file.read(_HEADER.size))
                after = start + _HEADER.size + length + _CHECKSUM.size
                if after > self.size or not _matches(header[:8], checksum):
                    break
                if length > _MOST_RECORD:
                    self.leave_out(after - start)
                else:
                    content = file.read(length)
                    yield content, _CHECKSUM.unpack(file.read(_CHECKSUM.size))[0]
                self.read += after - start
                start = after
            if start < self.size:
                self.damaged += 1

    def leave_out(self, size: int) -> None:
        """Count a record of that many bytes as left out, though it was yielded."""
        self.damaged += 1
        self.read -= size


@dataclass
class _State:
    """What the events before tell about the next one."""

    step: int = -1  # Of the newest event that was in order.
    has_restarts: bool = False  # Whether restarts are events of their own.
    skipped: Counter[str] = field(default_factory=Counter)  # What values are that are no numbers -> how many.


def rows(path: Path) -> Iterator[TrackerRow | None]:
    """Yield the scalars and restarts in a file, settings of its run, and in the end what is left out; None for others.

    A restart voids what was logged at its step or later: of all curves where the event says so (`SessionLog.START`), of
    one where the file is older than that and its steps go back, as TensorBoard's `EventAccumulator` has it.
    """
    import tensorboard.compat

    # TensorFlow, where it is installed, takes more memory than this process may have; the reader has one of its own.
    tensorboard.compat.notf = object()
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    records, state = _Records(path), _State()
    for content, checksum in records:
        try:
            event = Event.FromString(content)
        except (DecodeError, UnicodeDecodeError):
            event = None
        numbers = [] if event is None else list(_of_event(event, state))
        # A picture is not worth the second that its checksum takes.
        if event is None or ((numbers or len(content) <= _SMALL) and not _matches(content, checksum)):
            records.leave_out(_HEADER.size + len(content) + _CHECKSUM.size)
            yield None
            continue
        yield from numbers
        yield None
    for kind, count in state.skipped.items():
        yield remark(SKIPPED, kind, step=count)
    if records.damaged:
        yield unread(path.name, records.damaged, records.read, records.size)


def _matches(content: bytes, checksum: int) -> bool:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    return bool(masked_crc32c(content) == checksum)


def _of_event(event: Any, state: _State) -> Iterator[TrackerRow]:
    what = event.WhichOneof("what")
    if what == "file_version":
        version = event.file_version.removeprefix(_VERSION)
        state.has_restarts = version.replace(".", "", 1).isdecimal() and float(version[:20]) >= _SESSION_LOG_VERSION
    elif what == "session_log" and state.has_restarts:
        if event.session_log.status == event.session_log.START:
            yield remark(RESTART, step=event.step)
    elif what == "summary":
        goes_back = not state.has_restarts and event.step < state.step
        state.step = state.step if goes_back else event.step
        for value in event.summary.value:
            if goes_back and value.tag:
                yield remark(RESTART, value.tag, step=event.step)
            yield from _of_value(event, value, state)


def _of_value(event: Any, value: Any, state: _State) -> Iterator[TrackerRow]:
    kind, plugin = value.WhichOneof("value"), value.metadata.plugin_data.plugin_name
    number: float | None = None
    if kind == "simple_value":
        number = value.simple_value
    elif kind == "tensor" and plugin in (_SCALARS, ""):
        number = _number(value.tensor)
    if plugin == _SETTINGS:
        yield from _settings(value.metadata.plugin_data.content)
        return
    tag = value.tag or value.node_name
    row = None if number is None else number_row("", tag, event.step, event.wall_time, number)
    if row is None:
        what = str(plugin or kind)[:40] if number is None else "numbers before step 0"
        state.skipped[what if what in state.skipped or len(state.skipped) < _MOST_KINDS else "others"] += 1
    else:
        # Only the first value of a tag says what it is; that may have been in the file before.
        yield row._replace(remark="" if kind == "simple_value" or plugin else LATER)


def _number(tensor: Any) -> float | None:
    """Return the number in a tensor of one; its description may claim a terabyte, which is not unfolded."""
    from tensorboard.util import tensor_util

    if math.prod(axis.size for axis in tensor.tensor_shape.dim) != 1:
        return None
    try:
        array = tensor_util.make_ndarray(tensor)
        return float(array.item()) if array.dtype.kind in "fiubV" else None
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _settings(content: bytes) -> Iterator[TrackerRow]:
    """Yield what a session of `add_hparams` was started with."""
    from google.protobuf.message import DecodeError
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    try:
        session = HParamsPluginData.FromString(content).session_start_info
    except (DecodeError, UnicodeDecodeError):
        return
    for name, value in sorted(session.hparams.items()):
        kind = value.WhichOneof("kind")
        setting = "" if kind is None else getattr(value, kind)
        # All numbers are fractions there.
        is_whole = isinstance(setting, float) and setting.is_integer() and abs(setting) < MOST_STEP
        yield remark(SETTING, name, text=str(int(setting)) if is_whole else str(setting))
