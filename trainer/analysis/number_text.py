"""Numbers as people read them, the same in the window, in figures and in a terminal."""


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
