"""`python -m tests.rules.counts`: size and uniformity of the code, in numbers for comparing changes."""

import ast
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

from tests.rules import vocabulary
from tests.rules.sources import nodes, tree

ROOT = Path(__file__).parents[2]
MOST_CODE = 150
"""Lines of code of a chart's file."""


def source_lines(*folders: str) -> int:
    """Return the number of lines in all Python files, including blank ones and comments."""
    return sum(len(file.read_text().splitlines()) for folder in folders for file in (ROOT / folder).rglob("*.py"))


def code_in(*folders: str) -> int:
    """Return the number of lines of code in all Python files."""
    return sum(code_lines(file.read_text()) for folder in folders for file in (ROOT / folder).rglob("*.py"))


def colliding_classes() -> dict[str, list[str]]:
    """Return public classes of `explorer` and `trainer` that share a name, and their modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for folder in ("explorer", "trainer"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            for node in tree(file.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(module)
    return {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}


def loose_files(package: str) -> list[str]:
    """Return modules directly in the package, outside of its subpackages."""
    return sorted(file.name for file in (ROOT / package).glob("*.py"))


def charts() -> dict[str, str]:
    """Return chart -> source of its file."""
    from trainer.charts import registry

    folder = ROOT / "trainer" / "charts"
    return {name: (folder / f"{name.replace('-', '_')}.py").read_text() for name in registry.names()}


def measures() -> dict[str, str]:
    """Return name -> source of each module of `trainer.charts.measures`; the name is that of its chart."""
    files = (ROOT / "trainer" / "charts" / "measures").glob("[!_]*.py")
    return {file.stem.replace("_", "-"): file.read_text() for file in files}


def modules_of_one_chart() -> dict[str, str]:
    """Return module next to the charts, none itself -> the chart that alone imports it, of all source files."""
    users: dict[str, set[str]] = defaultdict(set)
    for file in (file for folder in ("explorer", "trainer") for file in (ROOT / folder).rglob("*.py")):
        for node in nodes(file.read_text()):
            if isinstance(node, ast.ImportFrom) and node.module and re.fullmatch(r"trainer\.charts\.\w+", node.module):
                users[node.module.rpartition(".")[2]].add(file.stem)
    files = {name.replace("-", "_") for name in charts()}
    return {module: min(by) for module, by in users.items() if module not in files and len(by) == 1 and by <= files}


def chart_table() -> dict[str, list[int]]:
    """Return chart -> lines of code of its file, and of the file with its measures."""
    of_measures = {name: code_lines(source) for name, source in measures().items()}
    table = {name: [code_lines(source)] for name, source in charts().items()}
    table = {name: [lines, lines + of_measures.get(name, 0)] for name, [lines] in table.items()}
    return dict(sorted(table.items(), key=lambda row: -row[1][0]))


def code_lines(source: str) -> int:
    """Return the lines without blank ones, comments, imports, docstrings and texts of three lines or more."""
    left_out: set[int] = set()
    for node in nodes(source):
        text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno - node.lineno > 1
        if text or isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            left_out.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(map(str.strip, source.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and place not in left_out for place, line in lines)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


STDLIB = {"_exit", "_shutdown", "_run_exitfuncs", "_DummyThread", "_actions", "_SubParsersAction", "_getframe"} | {
    "_C", "_cdata", "_disabled_torch_function_impl", "_ensureCUDADeviceGuardSet", "_make_wrapper_subclass", "_schema",
    "_set_only_lift_cpu_tensors", "_index_put_impl_", "_to_copy", "_unique2", "_unsafe_index",
    "_repr_png_", "_esm", "_split_scope",
}  # fmt: skip
"""Names of Python and other libraries that begin with an underscore.

argparse has no others for the subcommands of a parser, torch none for a device that is not there (the operations among
them are called so in its own list), and IPython and anywidget ask objects for theirs.
"""


def private_names_in_tests() -> int:
    """Return how often tests use a private attribute of another object."""
    found = 0
    sources = (file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    for source in filter(re.compile(r"\._[^_]").search, sources):
        for node in nodes(source):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                found += not own and node.attr not in STDLIB
    return found


def kinds_with_a_command_of_their_own() -> list[str]:
    """Return `trainer export` kinds with their own module: maps, films, matrices, overlays, unmigrated charts."""
    folder = ROOT / "trainer" / "cli" / "export"
    return sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")


def counts() -> dict[str, object]:
    """Return all counts by name."""
    sources = charts().values()
    lines, code = (sorted(map(count, sources)) for count in (lambda text: len(text.splitlines()), code_lines))
    return {
        "source lines of explorer and trainer": source_lines("explorer", "trainer"),
        "lines of code of these": code_in("explorer", "trainer"),
        "functions with a private vocabulary, percent": round(vocabulary.share_of_private_vocabulary(), 1),
        "files of one class named otherwise, and all": [
            len(vocabulary.misnamed_files()[0]),
            vocabulary.misnamed_files()[1],
        ],
        "lines of tests": source_lines("tests"),
        "charts of the registry": len(sources),
        "lines of a chart, median and most": [lines[len(lines) // 2], lines[-1]],
        "lines of code of a chart, median and most": [code[len(code) // 2], code[-1]],
        "charts with at most 150 lines of code": sum(count <= MOST_CODE for count in code),
        "lines of code of each chart, and with modules that only it uses": chart_table(),
        "private names used in tests": private_names_in_tests(),
        "kinds of export outside the registry": kinds_with_a_command_of_their_own(),
        "loose files": {package: loose_files(package) for package in ("explorer", "trainer")},
        "public classes that share a name": colliding_classes(),
    }


if __name__ == "__main__":
    json.dump(counts(), sys.stdout, indent=1)
    print()
