"""Read the numbers in lines that a training prints: `step 100: train loss 3.2`, `Epoch: [3][120/5004] Loss 2.3 (2.5)`.

Which number is the step, and what the others are called, is told by the words before them: a guess, which is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from trainer.untrusted.bounded.log_reading import EPOCHS, STEPS

SUFFIXES: Final = (".txt", ".log", ".out")
_MOST_LINE: Final = 2_000
"""Characters of a line that are looked at."""
_LEAST: Final = 3
"""Lines with the same metric that make a log."""
_SPLIT: Final = "split"
_COUNTERS: Final = [name for name in (*STEPS, *EPOCHS) if not name.endswith("s")]
"""Others say how many there are in all: `epochs=90`."""
_PARTS: Final = r"train(?:ing)?|val(?:id|idation)?|eval(?:uation)?|test"
_COUNT: Final = re.compile(
    rf"\b({'|'.join(_COUNTERS)}|train(?=: \d+ \[))['\"]?\s*[:=#]?\s*\[?\s*(\d+)(?!\d|\.\d)(?:\s*/\s*\d+)?\]?",
    re.IGNORECASE,
)
"""A step or an epoch with its number: `Step 3`, `Epoch [1/30]`; timm calls its epoch `Train: 3 [`."""
_WITHIN: Final = re.compile(r"\W{0,4}(\d+)\s*/\s*\d+")
"""Right behind the number of an epoch, how far it is: `[120/5004]`."""
_VALUE: Final = re.compile(
    rf"((?:\b(?:{_PARTS})[ /])?\b[a-z][\w@/.-]{{0,60}})['\"]?(?:\s*[:=]\s*|\s+)"
    r"([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf))(?![\w:/]|\.\d)",
    re.IGNORECASE,
)


def record_of(line: str) -> dict[str, str]:
    """Return step or epoch, part of the data and numbers of a line; empty without a step, or without a number."""
    text = line.rstrip().rpartition("\r")[2][:_MOST_LINE]  # a bar of progress writes over itself
    record: dict[str, str] = {}
    counts = list(_COUNT.finditer(text))
    if not counts:
        return {}
    for count in counts:
        name = "epoch" if count[1].lower() == "train" else count[1].lower()
        record.setdefault(name, count[2])
        if name in EPOCHS and (within := _WITHIN.match(text, count.end())):
            record.setdefault("iteration", within[1])
    # `Train Epoch: 1` is none of the numbers.
    counted = (*STEPS, *EPOCHS, counts[0][1].lower())
    numbers = {name: value for name, value in _VALUE.findall(text) if name.lower().split()[-1] not in counted}
    if not numbers:
        return {}
    if part := re.search(rf"\b({_PARTS})\b", text[: counts[0].end(1)], re.IGNORECASE):
        record[_SPLIT] = part[1].lower()
    return numbers | record


def is_text_log(lines: Iterable[str]) -> bool:
    """Return whether some lines have a number of the same name at a step."""
    names = Counter(name for line in lines for name in record_of(line))
    return any(count >= _LEAST for name, count in names.items() if name not in (*STEPS, *EPOCHS, _SPLIT))
