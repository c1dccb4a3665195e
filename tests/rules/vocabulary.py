"""How far names are standard terms: private words, classes named unlike their files, stale names in docstrings."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tests.rules import sources

ROOT = Path(__file__).parents[2]
SOURCES = ("explorer", "trainer")
PRIVATE = frozenset(
    [
        "found",
        "one",
        "place",
        "places",
        "words",
        "kept",
        "asked",
        "shown",
        "own",
        "way",
        "told",
        "whole",
        "here",
        "there",
        "known",
        "wanted",
        "given",
    ]
)
"""Words that say nothing about the value they name."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of every source file."""
    return {
        file: sources.tree(file.read_text()) for folder in SOURCES for file in sorted((ROOT / folder).rglob("*.py"))
    }


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield functions and methods, nested ones included."""
    return (node for node in sources.walked(tree) if isinstance(node, Function))


def names_bound_in(function: Function) -> set[str]:
    """Return parameters and variables, also of its lambdas and comprehensions, but not of functions within."""
    names = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    pending: list[ast.AST] = [*function.body]
    while pending:
        node = pending.pop()
        if isinstance(node, Function | ast.ClassDef):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        pending.extend(ast.iter_child_nodes(node))
    return names


def share_of_private_vocabulary() -> float:
    """Return the share of functions with a private word as a parameter or a variable, in percent."""
    private = [bool(names_bound_in(function) & PRIVATE) for tree in trees().values() for function in functions(tree)]
    return 100.0 * sum(private) / len(private)


def _singular_words(name: str) -> set[str]:
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return {re.sub(r"(?<=x)es$|s$", "", part.lower()) for part in parts}


def is_named_after_its_file(classes: list[str], file: Path) -> bool:
    """Return whether one of the classes has the words of the file, or only such words; its folder's count as well."""
    stem = file.parent.name if file.stem == "__init__" else file.stem
    words, room = _singular_words(stem), _singular_words(file.parent.name)
    if any(name.casefold() == stem.replace("_", "").casefold() for name in classes):
        return True
    every = [_singular_words(name) for name in classes]
    return any((words <= own | room and words & own) or (own <= words | room and own & words) for own in every)


def _main_classes(tree: ast.Module) -> list[str]:
    """Return public classes, exceptions aside, of a file that is mostly these; functions may have result classes."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    public = [node for node in classes if node.name[0] != "_" and not _is_exception(node)]
    functions_in_file = [node for node in tree.body if isinstance(node, Function)]
    is_family = len(public) > MOST_OF_ONE
    is_mostly_functions = _length(functions_in_file) > _length(classes)
    return [] if is_family or is_mostly_functions else [node.name for node in public]


MOST_OF_ONE = 2
"""A file with more public classes holds a family, whose name it has."""


def _length(nodes: Sequence[ast.stmt]) -> int:
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def _is_exception(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)


def misnamed_files() -> tuple[list[str], int]:
    """Return the files whose main classes are named unlike the file, and how many files have a main class."""
    misnamed, total = [], 0
    for file, tree in trees().items():
        classes = _main_classes(tree)
        total += bool(classes)
        if classes and not is_named_after_its_file(classes, file):
            misnamed.append(f"{file.relative_to(ROOT)}: {', '.join(classes)}")
    return misnamed, total


def exceptions_named() -> Iterator[tuple[str, str]]:
    """Yield (file, exception) of every `Raises:` section."""
    for file, tree in trees().items():
        for node in sources.walked(tree) if "Raises:" in file.read_text() else ():
            if isinstance(node, Function | ast.ClassDef | ast.Module):
                section = re.search(r"^ *Raises:\n((?: +.*\n?|\n)+)", ast.get_docstring(node) or "", re.MULTILINE)
                for name in re.findall(r"^ {4}([A-Za-z_.]+):", section.group(1) if section else "", re.MULTILINE):
                    yield str(file.relative_to(ROOT)), name.rpartition(".")[2]


def documents_named(folders: tuple[str, ...] = (*SOURCES, "tests")) -> Iterator[tuple[str, str]]:
    """Yield (file, document) of every capitalized Markdown file that a docstring or comment names."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for name in re.findall(r"\b([A-Z_]{3,})\.md\b", file.read_text()):
                yield str(file.relative_to(ROOT)), f"{name}.md"
