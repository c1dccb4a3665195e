"""Read the numbers in lines that a training prints: `step 100: train loss 3.2`, `Epoch: [3][120/5004] Loss 2.3 (2.5)`.

Which number is the step, and what the others are called, is told by the words before them: a guess, which is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from trainer.untrusted.bounded.log_reading import EPOCHS, STEPS, THOUSANDTHS

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
    rf"\b({'|'.join(_COUNTERS)}|train(?=: \d+ \[))['\"]?(?:\(\w{{1,10}}\))?\s*[:=#]?\s*\[?"
    r"\s*(\d+)(?!\d|\.\d)(?:\s*/\s*\d+)?\]?",
    re.IGNORECASE,
)
"""A step or an epoch with its number: `Step 3`, `Epoch [1/30]`; timm has `Train: 3 [`, mmengine `Epoch(train) [3]`."""
_WITHIN: Final = re.compile(r"\W{0,16}(\d+)\s*/\s*\d+")
"""Right behind the number of an epoch, how far it is: `[120/5004]`, or `  [   0/1251]` as torchvision and MAE write."""
_PART: Final = re.compile(rf"\b({_PARTS})\b", re.IGNORECASE)
_BELOW: Final = re.compile(rf"\W*(?:({_PARTS})\b|\d+/\d+\W)", re.IGNORECASE)
"""How a line below the heading of an epoch begins: with the part of the data, or with the batches that Keras counts."""
_VALUE: Final = re.compile(
    rf"((?:\b(?:{_PARTS})[ /])?\b[a-z][\w@/.-]{{0,60}})['\"]?(?:\s*[:=]\s*|\s+)"
    r"([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf))(?![\w:/]|\.\d)",
    re.IGNORECASE,
)
_BAR: Final = re.compile(r"([^|]*?):?\s*\d+%\|[^|]*\|\s*(\d+)/\d+ (\[[^\]]*\w=.*)")
"""What tqdm draws, with numbers behind its times: `Epoch 1:  10%|# | 10/100 [00:01<00:09, 9.8it/s, loss=0.5]`."""
_PRINTED: Final = re.compile(r"'([a-z][\w@/.-]{0,60})': '?([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf))'?(?=[,}])", re.I)
"""A number in a dictionary that is printed, as the Trainer of transformers does: `{'loss': 2.1, 'epoch': 0.5}`."""


def records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield step or epoch, part of the data and numbers of each line; empty without a step, or without a number.

    Below a line such as `Epoch 3/10`, lines that begin with a part of the data, or as Keras prints them, are of it.
    """
    heading: dict[str, str] = {}
    for text in _texts(lines):
        printed = dict(_PRINTED.findall(text)) if text.lstrip().startswith("{'") else {}
        if "." in printed.get("epoch", "") and not printed.keys() & {*STEPS}:
            epoch = min(float(printed.pop("epoch")), 1e9)
            yield {THOUSANDTHS: str(round(1_000 * epoch)), **printed} if printed else {}
            continue
        matches = list(_COUNT.finditer(text))
        below = _BELOW.match(text) if heading and not matches else None
        numbers = dict(_VALUE.findall(text)) if matches or below else {}
        # `Train Epoch: 1` is none of the numbers.
        counters = (*STEPS, *EPOCHS, *(match[1].lower() for match in matches))
        numbers = {name: value for name, value in numbers.items() if name.lower().split()[-1] not in counters}
        if matches:
            count, part = _count(text, matches), _PART.search(text[: matches[0].start(2)])
            heading = heading if numbers else count
        else:
            count, part = heading, below if below and below[1] else None
        if part:
            numbers = {re.sub(rf"^{part[1]} ", "", name): value for name, value in numbers.items()}
        yield {**numbers, **count, **({_SPLIT: part[1].lower()} if part else {})} if numbers else {}


def _texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines: of a bar of progress, which writes over itself, all states of tqdm, or what it ends with.

    A bar that names no count and begins again is of another epoch.
    """
    bars: dict[str, tuple[int, int]] = {}
    for line in lines:
        *states, end = line.rstrip().split("\r")
        for text in (*(state for state in states if _BAR.match(state[:_MOST_LINE])), end):
            if bar := _BAR.match(text[:_MOST_LINE]):
                label, at = bar[1], int(bar[2][:15])
                if not _COUNT.search(label):
                    last, epoch = bars.get(label, (0, 0))
                    bars[label] = at, epoch + (at < last)
                    label = f"{label} epoch {bars[label][1]}"
                text = f"{label} iteration {at}: {bar[3]}"
            yield text[:_MOST_LINE]


def is_text_log(lines: Iterable[str]) -> bool:
    """Return whether some lines have a number of the same name at a step."""
    names = Counter(name for record in records(lines) for name in record)
    return any(count >= _LEAST for name, count in names.items() if name not in (*STEPS, *EPOCHS, THOUSANDTHS, _SPLIT))


def _count(text: str, matches: list[re.Match[str]]) -> dict[str, str]:
    """Return the step and the epoch of a line, and how far it is in the epoch."""
    count: dict[str, str] = {}
    for match in matches:
        name = "epoch" if match[1].lower() == "train" else match[1].lower()
        count.setdefault(name, match[2])
        if name in EPOCHS and (within := _WITHIN.match(text, match.end())):
            count.setdefault("iteration", within[1])
    return count
