"""Numbers as people read them, the same in the window, in figures and in a terminal."""

import math
from collections.abc import Sequence
from itertools import pairwise

MOST_TICK_LETTERS = 6
"""Longer numbers at an axis are written with an exponent."""


def signed(value: float, digits: int = 1) -> str:
    """Format a difference with its sign, a true minus: `+2.3`, `−0.8`; what rounds to 0 has none."""
    text = f"{value:+z,.{digits}f}"
    return text.removeprefix("+") if not text.strip("+0.") else text.replace("-", "−")


def number(value: float, digits: int = 1) -> str:
    """Format a number, with a true minus where what is shown is below 0: `1,920.5`, `−0.8`."""
    return f"{value:z,.{digits}f}".replace("-", "−")


def signed_ends(low: float, high: float, digits: int = 1) -> str:
    """Format the interval of a difference."""
    return f"{signed(low, digits)} to {signed(high, digits)}"


def whole(value: float) -> str:
    """Format a number without decimals, such as a step: `1,920`."""
    return number(value, 0)


def tick_texts(values: Sequence[float], *, most: int = MOST_TICK_LETTERS) -> list[str]:
    """Format the ticks of an axis with the digits that tell them apart: `0.5`, `2,000`; if long, `4e−4`."""
    ticks = sorted({*values})
    step = min((b - a for a, b in pairwise(ticks)), default=abs(ticks[0]) if ticks else 0.0)
    if not step:
        return [f"{value:g}".replace("-", "−") for value in values]
    last = math.floor(math.log10(step) + 1e-9)  # the place of the last digit
    last -= next((more for more in range(3) if abs(step - round(step, more - last)) < 1e-6 * step), 2)
    plain = [number(value, max(0, -last)) for value in values]
    short = [_exponent(value, last) if abs(value) > 1e-6 * step else "0" for value in values]
    longest = max(map(len, plain))
    texts = plain if longest <= max(most, *map(len, short)) else short
    return [text if text.strip("−0.") else "0" for text in texts]


def _exponent(value: float, last: int) -> str:
    digits = max(0, math.floor(math.log10(abs(value)) + 1e-9) - last)
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}".replace("-", "−")
