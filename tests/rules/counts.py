"""`python -m tests.rules.counts`: size and uniformity of the code, in numbers for comparing changes."""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def source_lines(*folders: str) -> int:
    """Return the number of lines in all Python files, including blank ones and comments."""
    return sum(len(file.read_text().splitlines()) for folder in folders for file in (ROOT / folder).rglob("*.py"))


def colliding_classes() -> dict[str, list[str]]:
    """Return public classes of `explorer` and `trainer` that share a name, and their modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in ("explorer", "trainer"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(module)
    return {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}


def loose_files(package: str) -> list[str]:
    """Return modules directly in the package, outside of its subpackages."""
    return sorted(file.name for file in (ROOT / package).glob("*.py"))


def charts() -> dict[str, int]:
    """Return chart -> lines of its file."""
    from trainer.charts import registry

    folder = ROOT / "trainer" / "charts"
    files = {name: folder / f"{name.replace('-', '_')}.py" for name in registry.names()}
    return {name: len(file.read_text().splitlines()) for name, file in files.items()}


def kinds_with_a_command_of_their_own() -> list[str]:
    """Return `trainer export` kinds with their own module: maps, films, matrices, overlays, unmigrated charts."""
    folder = ROOT / "trainer" / "cli" / "export"
    return sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")


def counts() -> dict[str, object]:
    """Return all counts by name."""
    lines = charts()
    return {
        "source lines of explorer and trainer": source_lines("explorer", "trainer"),
        "lines of tests": source_lines("tests"),
        "lines of the README": len((ROOT / "README.md").read_text().splitlines()),
        "charts of the registry": len(lines),
        "lines of a chart, median and most": [sorted(lines.values())[len(lines) // 2], max(lines.values())],
        "kinds of export outside the registry": kinds_with_a_command_of_their_own(),
        "loose files": {package: loose_files(package) for package in ("explorer", "trainer")},
        "public classes that share a name": colliding_classes(),
    }


if __name__ == "__main__":
    json.dump(counts(), sys.stdout, indent=1)
    print()
