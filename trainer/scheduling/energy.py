"""The energy that graphics cards use for a run, and its price by the user's own tariff."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from trainer.config import default_paths
from trainer.errors import UserError
from trainer.scheduling.gpu_usage import Gpu
from trainer.store.files import make_folders, told_if_unwritable, write_text
from trainer.untrusted import confined
from trainer.untrusted import files as untrusted_files
from trainer.untrusted.documents import convert

FILE: Final = "tariff.json"
METRIC: Final = "system/energy_wh"
"""Curve of what a run has used since it began, in Wh."""
_JOULES_OF_WH: Final = 3600.0
_LEAST_S: Final = 1.0
"""Between two readings, which take milliseconds."""
_LONGEST_S: Final = 300.0
"""Between two readings of power; after a longer time nothing is known of what was drawn."""


class EnergyMeter:
    """Adds up what cards use: by their own counters, else by the power that they draw between two readings."""

    def __init__(
        self,
        read: Callable[[], tuple[Gpu, ...]],
        *,
        used_wh: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the first reading.

        Args:
            read: Returns the cards that train.
            used_wh: What the run has used before.
            clock: Tells seconds.
        """
        self._read, self._joules = read, used_wh * _JOULES_OF_WH
        self._clock = clock
        self._cards, self._at = {card.number: card for card in read()}, self._clock()
        self._tells = any(card.joules is not None or card.watts is not None for card in self._cards.values())

    def wh(self) -> float | None:
        """Return the energy so far; None where no card measures it."""
        if not self._tells:
            return None
        now = self._clock()
        passed = now - self._at
        if passed < _LEAST_S:
            return self._joules / _JOULES_OF_WH
        cards = {card.number: card for card in self._read()}
        for number, card in cards.items():
            before = self._cards.get(number)
            if before is None:
                continue
            if card.joules is not None and before.joules is not None:
                # A counter that went back was reset with its driver.
                self._joules += max(0.0, card.joules - before.joules)
            elif card.watts is not None and before.watts is not None and passed <= _LONGEST_S:
                self._joules += passed * (card.watts + before.watts) / 2
        self._cards, self._at = cards, now
        return self._joules / _JOULES_OF_WH


@dataclass(frozen=True)
class Tariff:
    """What electricity costs this user."""

    price: float  # Of a kilowatt-hour.
    currency: str = "EUR"  # As it is written: `EUR`.

    def words(self, wh: float) -> str:
        """Return what so much energy costs: `0.0123 EUR`."""
        return f"{self.price * wh / 1000:.3g} {self.currency}"


def tariff() -> Tariff | None:
    """Return what the user has set; None where that is nothing that can be read."""
    try:
        return convert(untrusted_files.read_record(default_paths.user_folder() / FILE), Tariff)
    except (OSError, ValueError):
        return None


def set_tariff(price: float, currency: str) -> None:
    """Keep what a kilowatt-hour costs, for all workspaces; 0 forgets it.

    Raises:
        UserError: It is no price, or the settings cannot be written.
    """
    currency = currency.strip()
    if not (math.isfinite(price) and price >= 0) or not (currency.isprintable() and 0 < len(currency) <= 8):
        raise UserError(f"{price} {currency[:20]!r} is not a price of a kilowatt-hour. Write it like 0.32 EUR.")
    folder = default_paths.user_folder()
    with told_if_unwritable(folder / FILE, ""):
        if not price:
            with contextlib.suppress(FileNotFoundError):
                confined.remove(folder, FILE)
            return
        make_folders(folder)
        write_text(folder / FILE, json.dumps(asdict(Tariff(price, currency))) + "\n")


def words(wh: float) -> str:
    """Return energy with its price, where the user has set a tariff: `12.3 Wh (0.00394 EUR)`."""
    price = tariff()
    return f"{wh:,.4g} Wh" + (f" ({price.words(wh)})" if price else "")
