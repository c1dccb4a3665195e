"""Untrusted captions, labels, columns and names are plain text in every file written."""

import csv
import html.parser
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.types as types
import pytest
from corpus.words import CAPTIONS, fill

from trainer.__main__ import main
from trainer.store import Workspace
from trainer.untrusted.escaping import cell

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

DANGEROUS = re.compile(r"[\s\ufeff\u200b\u00a0\u3000]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|nan)")

EXPORTS = (
    ("similarity",),
    ("map",),
    ("changes",),
    ("curves",),
    ("matrix",),
    ("hubness",),
    ("gap",),
    ("geometry",),
    ("representation-similarity",),
    ("embedding-spectrum",),
    ("batch-negatives",),
    ("attribute-probes",),
    ("hopfield-retrieval",),
    ("hopfield-pair",),
    ("hopfield-beta",),
    ("timeline",),
)
"""Those that need neither a trained model nor further files."""


@pytest.fixture(scope="module")
def alive(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return a workspace with texts that could be interpreted."""
    folder = tmp_path_factory.mktemp("words")
    workspace = Workspace(folder / "workspace")
    fill(workspace, folder / "pictures")
    return workspace


def cells(text: str) -> Iterator[str]:
    """Yield every cell of a CSV as a spreadsheet reads it."""
    for row in csv.reader(io.StringIO(text, newline="")):
        yield from row


def dangerous(text: str) -> list[str]:
    return [cell for cell in cells(text) if DANGEROUS.match(cell) and not NUMBER.fullmatch(cell)]


def is_plain_data(file: Path) -> bool:
    """Return whether a Parquet file has only plain columns with the unescaped texts of the CSV.

    No reader of Parquet runs a cell; what one may obey are extension types, which name code or carry pickles.
    """
    schema = pq.read_schema(file)
    kinds = (types.is_string, types.is_integer, types.is_floating, types.is_boolean)
    plain = all(any(is_kind(field.type) for is_kind in kinds) and not field.metadata for field in schema)
    header, *rows = csv.reader(io.StringIO(file.with_suffix(".csv").read_text(encoding="utf-8"), newline=""))
    beside = dict(zip(header, zip(*rows, strict=True), strict=True))
    table = pq.read_table(file)
    for name in table.column_names:
        # A column of numbers and texts is two here.
        cells_beside = beside[cell(name) if cell(name) in beside else cell(name.removesuffix("_text"))]
        if types.is_string(table[name].type):
            words = zip(table[name].to_pylist(), cells_beside, strict=True)
            plain &= all(text is None or cell(text) == shown for text, shown in words)
    return plain


def test_no_formula_leaves_in_a_table(alive: Workspace, faults, tmp_path: Path, capsys) -> None:
    written, formulas, texts = [], {}, 0
    kinds = EXPORTS if faults.whole else EXPORTS[:5]
    for kind, *more in kinds:
        files = [tmp_path / f"{kind}.csv", tmp_path / f"{kind}.parquet"]
        code = main(
            ["export", kind, "--runs", "1", "2", *more, "--workspace", str(alive.folder), "--out", *map(str, files)]
        )
        assert code == 0, (kind, capsys.readouterr().err)
        written += files
    _keep(alive)
    files = [tmp_path / f"kept.{ending}" for ending in ("csv", "parquet", "txt")]
    assert main(["selections", "export", "=kept", "--workspace", str(alive.folder), "--out", *map(str, files)]) == 0
    files += [tmp_path / "compared.csv"]
    assert main(["compare", "1", "2", "--workspace", str(alive.folder), "--out", str(files[-1])]) == 0
    for file in written + files:
        if file.suffix == ".csv":
            text = file.read_text(encoding="utf-8")
            texts += sum(any(part in cell for part in ("cmd|", "SUM(", "=1+1")) for cell in cells(text))
            if bad := dangerous(text):
                formulas[file.name] = bad[:3]
    tables = [file for file in written + files if file.suffix == ".csv"]
    columns = [file for file in written + files if file.suffix == ".parquet"]
    changed = [file.name for file in columns if not is_plain_data(file)]

    assert texts > 20, "the captions never came so far"
    faults.row(12, "captions like formulas are exported", "0 formulas in CSV", len(tables), len(tables) - len(formulas))
    assert pq.read_table(tmp_path / "kept.parquet").column("title").to_pylist() == list(CAPTIONS)
    words = "plain columns of words, numbers and truths, no code beside them; each word as it was"
    faults.row(12, "captions like formulas are exported to Parquet", words, len(columns), len(columns) - len(changed))
    assert not formulas
    assert not changed


def _keep(workspace: Workspace) -> None:
    """Save every pair under a name that is itself a formula."""
    if not any(selection.name == "=kept" for selection in workspace.selections.all()):
        command = ["selections", "keep", "=kept", "--run", "1", "--rows", *map(str, range(len(CAPTIONS)))]
        assert main([*command, "--workspace", str(workspace.folder)]) == 0


class Tags(html.parser.HTMLParser):
    """Collects the markup of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        words = " ".join(f"{name}={value}" for name, value in attributes)
        self.found.append(f"{tag} {words}")


def test_no_markup_leaves_in_a_page(alive: Workspace, faults, tmp_path: Path, capsys) -> None:
    page, table, paper = tmp_path / "report.html", tmp_path / "t.md", tmp_path / "t.tex"
    space = ["--workspace", str(alive.folder)]
    page.touch()
    if faults.whole:  # draws every figure, which takes a while
        assert main(["report", "1", "2", "--out", str(page), *space]) == 0, capsys.readouterr().err
    assert main(["compare", "1", "2", "--out", str(table), str(paper), *space]) == 0, capsys.readouterr().err

    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    bad = [
        tag for tag in tags.found if "canary" in tag or "127.0.0.1" in tag or "onload" in tag or tag.startswith("b ")
    ]
    words = table.read_text(encoding="utf-8")
    plain = re.sub(r"\\[<>\[\]|`*_&]|\*\*", "", words)
    bad += re.findall(r"<[a-zA-Z/][^>]*>", plain)
    bad += re.findall(r"\\(?:input|write)", paper.read_text(encoding="utf-8"))
    faults.row(
        12, "markup in names and captions is exported", "0 live in HTML, Markdown, LaTeX", 3, 3 if not bad else 0
    )
    assert not bad
