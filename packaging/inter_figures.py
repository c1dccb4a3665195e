"""Leaves the tabular figures of Inter to figures: `uv run python packaging/inter_figures.py`.

Inter's feature `tnum` also widens spaces, hyphens and brackets to the width of a figure, and Qt turns a feature on for
a whole text: `held-out` was drawn as `held - out`. The license (OFL) allows changed files, and reserves no name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fontTools.ttLib import TTFont

FONTS: Final = Path(__file__).resolve().parent.parent / "assets" / "fonts"
KEPT: Final = frozenset(ord(sign) for sign in "0123456789+−±<>=≤≥≈×÷")
"""Figures, and the signs that stand before one in a column."""


def main() -> None:
    """Change every file of the folder in place; a second time changes nothing."""
    for file in sorted(FONTS.glob("*.ttf")):
        font = TTFont(file, recalcTimestamp=False)
        kept = {name for code, name in font.getBestCmap().items() if code in KEPT}
        dropped = sum(_drop_others(table, kept) for table in _tabular(font))
        if dropped:
            font.save(file)
        print(f"{file.name}: {dropped} signs keep their own width")


def _tabular(font: TTFont) -> list:
    """Return the substitutions of `tnum`."""
    table = font["GSUB"].table
    places = {
        place
        for record in table.FeatureList.FeatureRecord
        if record.FeatureTag == "tnum"
        for place in record.Feature.LookupListIndex
    }
    return [getattr(one, "ExtSubTable", one) for place in places for one in table.LookupList.Lookup[place].SubTable]


def _drop_others(table, kept: set[str]) -> int:
    others = [name for name in table.mapping if name not in kept]
    for name in others:
        del table.mapping[name]
    return len(others)


if __name__ == "__main__":
    main()
