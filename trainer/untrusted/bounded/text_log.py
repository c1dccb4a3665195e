"""Read the numbers in lines that a training prints: `step 100: train loss 3.2`, `Epoch: [3][120/5004] Loss 2.3 (2.5)`.

Which number is the step, and what the others are called, is told by the words before them: a guess, which is said.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from trainer.untrusted.bounded.log_reading import CONTEXT, EPOCHS, PROCESS, STEPS, THOUSANDTHS, log_columns

SUFFIXES: Final = (".txt", ".log", ".out")
_MOST_LINE: Final = 2_000
"""Characters of a line that are looked at."""
_LEAST: Final = 3
"""Lines with the same metric that make a log."""
_SPLIT: Final = "split"
_COUNTERS: Final = ["num_updates", *(name for name in (*STEPS, *EPOCHS) if not name.endswith("s"))]
"""Others say how many there are in all: `epochs=90`."""
_PARTS: Final = r"train(?:ing)?|val(?:id|idation)?|eval(?:uation)?|test"
_COUNT: Final = re.compile(
    rf"\b({'|'.join(_COUNTERS)}|steps(?=: \d+ loss)|train(?=: (?:\d+ \[|\[\d+/\d+\]\[)))['\"]?(?:\(\w{{1,10}}\))?"
    r"\s*[:=#]?\s*\[?\s*(\d+)(?!\d|\.\d)(?:\s*/\s*\d+)?\]?",
    re.IGNORECASE,
)
"""A step or an epoch with its number: `Epoch [1/30]`; timm has `Train: 3 [`, Swin `Train: [3/300][`, mmengine
`Epoch(train) [3]`, DeepSpeed `steps: 10 loss: 2.3`."""
_WITHIN: Final = re.compile(r"\W{0,16}(?:batch\W{1,4})?(\d+)\s*/\s*\d+", re.IGNORECASE)
"""Right behind the number of an epoch, how far it is: `[120/5004]`, `  [   0/1251]` as torchvision and MAE write, or
`batch [5/12]` as CoOp does."""
_PART: Final = re.compile(rf"\b({_PARTS})\b", re.IGNORECASE)
_BELOW: Final = re.compile(rf"\W*(?:({_PARTS})\b|\d+/\d+\W)", re.IGNORECASE)
"""How a line below the heading of an epoch begins: with the part of the data, or with the batches that Keras counts."""
_VALUE: Final = re.compile(
    rf"((?:\b(?:{_PARTS})[ /])?\b[a-z][\w@/.-]{{0,60}})['\"]?(?:\s*[:=]\s*|\s+)"
    r"([-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|inf))(?![\w:/]|[.,]\d)",
    re.IGNORECASE,
)
_NO_NAME: Final = re.compile(r"of|is|at|in|to|for|the|and|with|from|cuda|.*\.(?:py|cpp|cc|cu)", re.IGNORECASE)
"""What numbers of other kinds are behind: `number of nan iterations`, `device='cuda:0'`, `(main.py 223)`."""
_WORD: Final = re.compile(r"[a-z][\w@/.+-]*", re.IGNORECASE)
_COLORS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08")
_SCALAR: Final = re.compile(r"\b(?:tensor|(?:np\.|numpy\.)?(?:array|float\d\d))\(\[?([-+.\w]+)\]?(?:, [^()]*)?\)")
"""How Python prints a number of torch or numpy: `tensor(2.3, device='cuda:0')`, `np.float64(2.3)`."""
_GROUPED: Final = re.compile(r"(?<![\w.,])([1-9]\d{0,2})((?:[,_\u00a0\u202f]\d{3})+)(?![\w,])")
"""A number with signs between its thousands: `1,000`."""
_THOUSANDS: Final = re.compile(r"(?<![\w.,])(\d{1,9})k(?!\w)", re.IGNORECASE)
_PROCESS: Final = re.compile(
    r"\[(?:(?:local_|global_)?rank|default)[ :=_]?(\d{1,6})\]:?|^\s*rank[ :=_]?(\d{1,6})\b", re.I
)
"""Whose line it is where several processes print: `[rank0]:` of torch, `[default0]:` of torchrun, `[Rank 0]`."""
_OBJECT: Final = re.compile(r'\{\s*".*\}\s*$')
_BAR: Final = re.compile(r"([^|]*?):?\s*\d+%\|[^|]*\|\s*(\d+)/\d+ (\[[^\]]*\w=.*)")
"""What tqdm draws, with numbers behind its times: `Epoch 1:  10%|# | 10/100 [00:01<00:09, 9.8it/s, loss=0.5]`."""
_PRINTED: Final = re.compile(r"'([a-z][\w@/.-]{0,60})': '?([-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf))'?(?=[,}])", re.I)
"""A number in a dictionary that is printed, as the Trainer of transformers does: `{'loss': 2.1, 'epoch': 0.5}`."""


def records(lines: Iterable[str], guessed: Counter[str] | None = None) -> Iterator[dict[str, str]]:
    """Yield step or epoch, part of the data and numbers of each line; empty without a step, or without a number.

    Below a line such as `Epoch 3/10`, lines that begin with a part of the data, or as Keras prints them, are of it.

    Args:
        lines: Of the log.
        guessed: Receives how many numbers had signs between their thousands.
    """
    heading: dict[str, str] = {}
    for line in _texts(lines):
        text = _GROUPED.sub(lambda match: match[1] + re.sub(r"\D", "", match[2]), line)
        text = _THOUSANDS.sub(r"\g<1>000", text)
        if guessed is not None and text != line:
            guessed["thousands"] += len(_GROUPED.findall(line)) + len(_THOUSANDS.findall(line))
        if process := _PROCESS.search(text):
            text = text[: process.start()] + text[process.end() :]
        record, heading = _record(text, heading)
        yield record | {PROCESS: process[1] or process[2]} if record and process else record


def _record(text: str, heading: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return step or epoch, part and numbers of a line, and the heading for those below it."""
    if record := _printed_object(text):
        return record, heading
    printed = dict(_PRINTED.findall(text)) if text.lstrip().startswith("{'") else {}
    if "." in printed.get("epoch", "") and not printed.keys() & {*STEPS}:
        epoch = min(float(printed.pop("epoch")), 1e9)
        return ({THOUSANDTHS: str(round(1_000 * epoch)), **printed} if printed else {}), heading
    matches = list(_COUNT.finditer(text))
    below = _BELOW.match(text) if heading and not matches else None
    counted = max((match.end() for match in matches), default=0)
    numbers = _numbers(text, counted) if matches or below else {}
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
    first = next((match.start() for match in _VALUE.finditer(text, counted)), counted)
    record = {
        **numbers,
        **count,
        CONTEXT: " ".join(_WORD.findall(text[counted:first])),
        **({_SPLIT: part[1].lower()} if part else {}),
    }
    return (record if numbers else {}), heading


def _printed_object(text: str) -> dict[str, str]:
    """Return the numbers of a JSON object at the end of a line that counts steps or epochs, as fairseq prints them."""
    match = _OBJECT.search(text)
    try:
        values: Any = json.loads(match[0]) if match else {}
    except (ValueError, RecursionError):
        return {}
    return {name: str(value) for name, value in values.items()} if log_columns(list(values)).step else {}


def _numbers(text: str, counted: int) -> dict[str, str]:
    """Return name -> number; where a line has a name or parts of the data several times, words before are added."""
    values = [match for match in _VALUE.finditer(text) if not _NO_NAME.fullmatch(match[1])]
    names = [match[1] for match in values]
    parts: list[str] = []
    words: list[str] = []
    part, word, end = "", "", counted
    for match in values:
        between = text[min(end, match.start()) : match.start()]
        part = next(iter(_PART.findall(between)[-1:]), part)
        word = next(iter(_WORD.findall(between)[-1:]), word)
        parts, words, end = [*parts, part], [*words, word], match.end()
    is_repeated = len({*names}) < len(names)
    if not is_repeated and len({part.lower() for part in parts if part}) < 2:
        return {match[1]: match[2] for match in values}
    by_part = [name if _PART.match(name) or not part else f"{part}/{name}" for part, name in zip(parts, names)]
    by_word = [f"{word} {name}".strip() if names.count(name) > 1 else name for word, name in zip(words, names)]
    numbered = [f"{name} ({n})" if (n := names[: row + 1].count(name)) > 1 else name for row, name in enumerate(names)]
    chosen = next((labels for labels in (by_part, by_word) if len({*labels}) == len(labels)), numbered)
    return {label: match[2] for label, match in zip(chosen, values, strict=True)}


def _texts(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines: of a bar of progress, which writes over itself, all states of tqdm, or what it ends with.

    A bar that names no count and begins again is of another epoch.
    """
    bars: dict[str, tuple[int, int]] = {}
    for line in lines:
        *states, end = _SCALAR.sub(r"\1", _COLORS.sub("", line)).rstrip().split("\r")
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
    counters = (*STEPS, *EPOCHS, THOUSANDTHS, PROCESS, CONTEXT, _SPLIT)
    return any(count >= _LEAST for name, count in names.items() if name not in counters)


def _count(text: str, matches: list[re.Match[str]]) -> dict[str, str]:
    """Return the step and the epoch of a line, and how far it is in the epoch."""
    count: dict[str, str] = {}
    for match in matches:
        name = "epoch" if match[1].lower() == "train" else match[1].lower()
        count.setdefault(name, match[2])
        if name in EPOCHS and (within := _WITHIN.match(text, match.end())):
            count.setdefault("iteration", within[1])
    return count
