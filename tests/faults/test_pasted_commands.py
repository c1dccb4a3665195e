"""Untrusted words in copied commands: one word each in a real shell, without effect on a terminal."""

import ast
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from explorer.export import shell_command
from tests.nightly import few_plain
from tests.rules.sources import nodes
from trainer.untrusted import shell

pytestmark = pytest.mark.faults

ROOT = Path(__file__).resolve().parents[2]
ORDINARY = [
    "",
    "a",
    "1 2",
    "it's",
    '"',
    "$(touch x)",
    "`x`",
    "a;b",
    "~",
    "*.png",
    "-x",
    "Müller",
    "日本",
    "😀",
    "a\\b",
    "!",
]
HOSTILE = [
    "\x15touch x\n",
    "a\x15touch x\x0f",
    "\x1b[201~\x15id\x0f",
    "a\nb",
    "tab\there",
    "it's\x7f!\\n $(id)",
    "\x85\x9b31mred",
    "\u2028line\u2029",
    "pic\u202egnp.exe",
    "\u2066x\u2069\u200f",
    "\x01" + "1f",
    "\r\r",
    "é\x1b日😀",
    "broken\udcff",
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@few_plain(1, "locale", ["C", "C.UTF-8"])
def test_a_real_shell_gets_the_words_back(locale: str, faults) -> None:
    words = [*ORDINARY, *HOSTILE]
    line = shell.join(["printf", r"%s\0", *words], posix=True)
    said = subprocess.run(
        ["bash", "--norc", "-c", line], capture_output=True, check=True, env={"LC_ALL": locale, "PATH": "/bin:/usr/bin"}
    )
    expected = b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)
    assert said.stdout == expected
    faults.row("S7", f"signs of a terminal or shell in a copied command ({locale})", "words", len(words), len(words))


@pytest.mark.parametrize("posix", [True, False])
@pytest.mark.parametrize("word", HOSTILE)
def test_nothing_in_a_line_acts_on_a_terminal(word: str, posix: bool) -> None:
    assert not re.search(f"[{shell.ACTING}]", shell.join(["trainer", word], posix=posix))
    assert not re.search(f"[{shell.ACTING}]", shell_command(["classify", word], Path("/w")))


@pytest.mark.parametrize("word", ORDINARY)
def test_an_ordinary_word_is_quoted_as_ever(word: str) -> None:
    assert shell.quote(word, posix=True) == shlex.quote(word)
    assert shlex.split(shell.join(["a", word], posix=True)) == ["a", word]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("--runs", "--runs"),
        ("C:\\Users\\me", "C:\\Users\\me"),
        ("-a.b", "'-a.b'"),
        ("--%", "'--%'"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", "'it''s'"),
        ("it’s; calc", "'it’’s; calc'"),
        ("$(calc) `n $env:x", "'$(calc) `n $env:x'"),
        ("a\x15b\n", "('a' + [char]21 + 'b' + [char]10 + '')"),
    ],
)
def test_words_for_powershell(word: str, expected: str) -> None:
    assert shell.quote(word, posix=False) == expected


def test_a_quoted_program_is_called_in_powershell() -> None:
    assert shell.join(["C:\\My Programs\\python.exe", "-m", "x"], posix=False) == "& 'C:\\My Programs\\python.exe' -m x"


def test_only_one_module_quotes_words() -> None:
    """The standard library's quoting lets control characters through."""
    quoting = set()
    for file in (f for room in ("trainer", "explorer") for f in (ROOT / room).rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if "shlex" not in source and "list2cmdline" not in source:
            continue  # most files: parsing all takes seconds
        for node in nodes(source):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if (
                "shlex" in names
                or (isinstance(node, ast.ImportFrom) and node.module == "shlex")
                or (isinstance(node, ast.Attribute) and node.attr == "list2cmdline")
            ):
                quoting.add(file.relative_to(ROOT).as_posix())
    assert quoting == {"trainer/untrusted/shell.py"}
