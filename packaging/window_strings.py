"""List every text that the window can show, with its file: `python packaging/window_strings.py [FOLDER...]`.

Labels, tool tips, sentences and their parts are read from the source by its syntax tree, so that somebody can read the
words of the window from top to bottom. Names of objects, keys, style sheets and docstrings are left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("explorer", "trainer/charts", "trainer/config", "trainer/experiments", "trainer/metrics.py")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_NAME = re.compile(r"[a-z0-9_./:#*-]+|[A-Z_0-9]+|#[\w-]+.*|--[\w-]+|[a-z]+[A-Z]\w*")
_CODE = re.compile(r"[{};]\s*$|^Q\w+[\[:#]|^SELECT |\bpx;|^select |^:")
NAMED = frozenset({"objectName", "name", "key", "role"})
"""Keyword arguments whose texts nobody sees."""


def strings(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and text of what a module of these nodes can show; `{…}` stands for what a text is filled with."""
    hidden: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Expr) or (isinstance(node, ast.keyword) and node.arg in NAMED):
            hidden.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            hidden |= {id(part) for part in ast.walk(node)} - {id(node)}
    for node in nodes:
        if id(node) not in hidden and (text := _text(node)) is not None and is_shown(text):
            yield node.lineno, text  # type: ignore[attr-defined]


def is_shown(text: str) -> bool:
    """Return whether a text has words that a person may read, and is no name, key or code."""
    return bool(_WORDS.search(text)) and not _NAME.fullmatch(text) and not _CODE.search(text)


def files(folders: tuple[str, ...] = FOLDERS) -> Iterator[Path]:
    """Yield the modules of the folders in order."""
    for folder in folders:
        path = ROOT / folder
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{…}" for part in node.values)
        return "".join(str(part) for part in parts)
    return None


def main(folders: list[str]) -> None:
    """Print the texts, file by file."""
    for path in files(tuple(folders) or FOLDERS):
        lines = sorted(strings([*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]))
        if lines:
            print(f"\n{path.relative_to(ROOT)}")
        for line, text in lines:
            print(f"{line:5}  {text}".replace("\n", "⏎"))


if __name__ == "__main__":
    main(sys.argv[1:])
