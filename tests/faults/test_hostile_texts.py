"""TOML, journals of reviews and definitions of experiments that a stranger wrote are bounded, odd parts passed over."""

import json
import os
from pathlib import Path

import pytest

from tests.nightly import few_plain
from trainer import config
from trainer.__main__ import main
from trainer.experiments.experiment import clip_and_cloob, from_toml, read, to_toml
from trainer.store import Workspace
from trainer.store.reviews import JOURNAL, Review
from trainer.untrusted import files, shell

pytestmark = pytest.mark.faults

LONG = 100_000
TOML = {
    "a name with dots": "a" + ".a" * LONG + "=1",
    "a name with dots and blanks": "a" + " . a" * LONG + "=1",
    "a table with dots": "[a" + ".a" * LONG + "]",
    "a list of tables with dots": "[[a" + ".a" * LONG + "]]",
    "quoted names with dots": "a" + '."a"' * LONG + "=1",
    "quoted names with quotes and dots": r'"\""' + r'."\""' * (LONG - 10) + "=1",
    "names with dots in a table": "a={b" + ".a" * LONG + "=1}",
    "deep lists": "a=" + "[" * LONG,
    "deep tables": "a=" + "{a=" * LONG,
    "a number": "a=" + "9" * LONG,
    "a megabyte": "a=[" + "1," * 300_000 + "]",
    "half": 'a="' + "x" * LONG,
}


@pytest.mark.parametrize("text", TOML.values(), ids=TOML)
def test_toml_that_takes_hours_or_is_none_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"dots|deep|digits|longer|Unterminated|expected|Invalid|Expected|Unclosed"):
        files.parse_toml(text)
    for reader in (config.from_toml, from_toml):
        with pytest.raises(config.ConfigError):
            reader(text)
    (tmp_path / "a.toml").write_text(text)
    for read_file in (config.read, read):
        with pytest.raises(config.ConfigError):
            read_file(tmp_path / "a.toml")


def test_usual_toml_is_read() -> None:
    text = 'a.b.c = 1\nwords = "1.2.3.4.' + "5." * 20 + '"\n[x."y.z"]\npath = "a/b.c/d.e"\n'
    assert files.parse_toml(text)["a"] == {"b": {"c": 1}}
    asked = clip_and_cloob(None)
    assert from_toml(to_toml(asked)) == asked


ODD = (
    *(b"\n", b"x\n", b"\xff\xfe\n", b"[]\n", b"null\n", b"[" * 100_000 + b"\n", b'{"a": ' * 50_000 + b"\n"),
    *(b'{"dataset": "s"}\n', b'{"dataset": "s", "pair": "p", "state": "x", "created_at": 1}\n'),
    *(b'{"dataset": "s", "pair": "\\ud800", "state": "flagged", "created_at": 1}\n',),
    *(b'{"dataset": "s", "pair": "a\\u0000", "state": "flagged", "created_at": 1}\n',),
    *(b'{"dataset": "s", "pair": "p", "state": "flagged", "created_at": %s}\n' % number for number in
      (b"Infinity", b"-1", b"1e300", b"NaN", b"true", b'"1"', b"9" * 5_000)),
    *(b'{"dataset": ["s"], "pair": "p", "state": "flagged", "created_at": 1}\n', b"x" * 9_000_000 + b"\n"),
    *(b'{"dataset": "s", "pair": "p", "state": "flagged", "created_at": 1, "id": 5}\n',),
)  # fmt: skip


def test_odd_lines_among_reviews_are_passed_over(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "space")
    workspace.runs.create(config.Run(name="one"), status="stopped")
    workspace.reviews.put([Review("s", "first", "flagged", caption="a"), Review("s", "second", "ignored")])
    journal = workspace.folder / JOURNAL
    good = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(good[0] + b"".join(ODD) + good[1])
    workspace.rebuild()
    assert {one.pair: one.state for one in workspace.reviews.all()} == {"first": "flagged", "second": "ignored"}
    workspace.close()


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes in its folders")
@few_plain(2, "what", ["fifo", "zero", "folder", "many"])
def test_reviews_without_an_end_are_not_waited_for(tmp_path: Path, what: str, monkeypatch) -> None:
    from trainer.store import reviews

    workspace = Workspace(tmp_path / "space")
    workspace.runs.create(config.Run(name="one"), status="stopped")
    journal = workspace.folder / JOURNAL
    if what == "fifo":
        os.mkfifo(journal)
    elif what == "zero":
        journal.symlink_to("/dev/zero")
    elif what == "folder":
        journal.mkdir()
    else:
        monkeypatch.setattr(reviews, "_MOST", 3)
        line = {"dataset": "s", "state": "flagged", "created_at": 1}
        journal.write_text("".join(json.dumps(line | {"pair": str(k)}) + "\n" for k in range(9)))
    said: list[str] = []
    workspace.rebuild(said.append)
    assert len(workspace.reviews.all()) == (3 if what == "many" else 0)
    assert what != "many" or any("more than 3 reviews" in words for words in said)
    workspace.close()


NAMES = ("a\x15b", "a\nb", "\x1b]0;x\x07", "a\u202eb", "a\u2028b", "\ud800", " ", "x" * 81, "a\0b")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_experiments_and_arms_are_visible_text(name: str, tmp_path: Path, capsys) -> None:
    asked = clip_and_cloob(None)
    plain = to_toml(asked)
    spelled = json.dumps(name).replace("\\ud800", "\\uD800")
    for old in (f'name = "{asked.name}"', f'name = "{asked.arms[1].name}"'):
        assert old in plain
        with pytest.raises(config.ConfigError):
            from_toml(plain.replace(old, f"name = {spelled}", 1))
    with pytest.raises(config.ConfigError):
        from_toml(plain.replace(f'name = "{asked.name}"', 'preset = "../../../etc/passwd"', 1))
    assert main(["experiment", "show", name, "--workspace", str(tmp_path / "space")]) == 2
    assert capsys.readouterr().err.rstrip("\n").isprintable()
    assert not any(sign in shell.join(["trainer", "experiment", "run", name]) for sign in "\x15\n\x1b\u202e\u2028\0")
