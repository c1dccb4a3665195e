"""Names, keys and texts are spelled as in Qt, torch and matplotlib: color, optimizer, neighbor, gray."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEMS = (
    "amort apolog author categor character crystall custom digit emphas equal factor final formal general harmon "
    "hypothes ideal initial linear local marginal maxim memor minim modern neutral normal optim organ orthogonal "
    "parametr polar popular priorit quant random raster real recogn regular sanit serial special stabil standard "
    "summar symmetr synchron synthes token util vector visual"
)
BRITISH = re.compile(
    "colour|neighbour|behaviour|favour|honour|centre|centring|catalogue|licence|defence|artefact|judgement"
    "|(?<![a-z])grey(?!hound)|analys(?:e(?!s)|ing)|labell(?:ed|ing)|modell(?:ed|ing)|travell|signall|(?<![a-z])learnt"
    f"|(?<![a-z])(?:re|un|de)?(?:{'|'.join(STEMS.split())})is(?:e|ed|es|er|ers|ing|able|ation|ations)(?![a-z])"
)
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""A word of a text, or of a name: `nClassColours` has three."""
READ = (".py", ".md", ".toml", ".qss", ".css", ".json", ".yml", ".desktop")
ROOMS = ("explorer", "trainer", "tests", "assets", "packaging", ".ci")
OTHERS = (
    "assets/fonts/",
    "assets/icons/",
    "uv.lock",
    "assets/prompts/",  # names of classes as their data sets give them
    "tests/faults/corpus/",
    "tests/rules/test_spelling.py",
)
ALLOWED = {
    "trainer/charts/color_words.py": {"grey"},
    "tests/explorer/test_palette.py": {"colour", "Colour", "neighbours"},
}
"""What people write in captions, and in the palette."""


def british(text: str) -> list[str]:
    """Return the words that are spelled otherwise than in Qt, torch and matplotlib."""
    return [part for part in PART.findall(text) if BRITISH.search(part.lower())]


def _files() -> list[str]:
    rooms = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*"))]
    names = [path.relative_to(ROOT).as_posix() for path in [*rooms, *sorted(ROOT.glob("*"))] if path.is_file()]
    return [name for name in names if not name.startswith(OTHERS) and "__pycache__" not in name]


def test_no_name_key_or_text_is_spelled_otherwise():
    found = []
    for name in _files():
        allowed = ALLOWED.get(name, set())
        found += [f"the name of {name}" for _ in british(name)]
        if name.endswith(READ):
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
                found += [f"{name}:{number}: {word}" for word in british(line) if word not in allowed]
    assert not found, "\n".join(found[:40])


@pytest.mark.parametrize(
    "text",
    [
        "def recolour(self): ...",
        "class PairColours:",
        "MOST_NEIGHBOURS = 5",
        "[optimiser]",
        "A grey point has no class.",
        "trainer analyse gap",
        "tone_grey",
        "The rows are normalised.",
        "map/centre_of.py",
        "Unlabelled images",
        "REGULARISATION",
    ],
)
def test_planted_words_are_found(text):
    assert british(text)


@pytest.mark.parametrize(
    "text",
    [
        "color neighbor gray center analyze analyses",
        "Greyhound",
        "noise, otherwise, raised, precise, promise",
        "cancelled",
    ],
)
def test_other_words_are_not(text):
    assert not british(text)
