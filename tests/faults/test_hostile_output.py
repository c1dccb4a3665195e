"""What commands print of a workspace whose every text is hostile: no sign that a terminal acts on; JSON stays JSON."""

import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.faults.conftest import SMALL
from trainer.__main__ import main
from trainer.experiments.experiment import clip_and_cloob, to_toml
from trainer.store import RunLog, Workspace, schema
from trainer.trackers.import_curves import SETTINGS

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

EVIL = "\x1b[2J\x1b]52;c;QQ==\x07\x1b]0;own\x1b\\ \u202eabc\u2066\u2028\u2029\x9b31m\x85\x7f\r\n0\bx\x00"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tab and line end, direction marks, separators of lines."""
KEPT = {"id", "folder", "config", "facts", "alerts", "status", "asked", "question", "definition", "value"}
"""Columns with a form of their own: a hostile text there is a damaged cell, which other tests have."""
COMMANDS = (
    ("runs",), ("runs", "--deleted"), ("runs", "show", "1"), ("runs", "show", "2"), ("runs", "note", "1"),
    *(("runs", "list", "--group-by", by) for by in ("tag", "experiment", "data", "objective", "arm", "preset")),
    ("runs", "list", "--columns", "note", "tags", "reason", "experiment", "preset", "image_to_text_R@1"),
    ("runs", "list", "--filter", EVIL), ("runs", "show", EVIL), ("compare", "1", "2"), ("queue",),
    ("selections", "list"), ("experiment", "list"), ("experiment", "show", EVIL), ("data", "quality", "1"),
    ("analyze", "curves", "1", "2"), ("analyze", "comparison", "1"), ("analyze", "config-difference", "1", "2"),
    ("report", "1", "--out", "{out}.html"), ("export", "curves", "--runs", "1", "--out", "{out}.csv"),
    ("independent", "1"), ("evaluate", "1", "--task", "zero-shot"), ("resume", "1", "--step", "3"), ("places", "list"),
    ("stop", EVIL), ("nonsense" + EVIL,), ("runs", EVIL), ("analyze", "search", "1", "--query-text", EVIL), ("doctor",),
)  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a workspace of whose database every free text is hostile, in one of two runs with all signs."""
    workspace = Workspace(tmp_path / "space")
    for _ in range(2):
        with RunLog.claim(workspace, workspace.runs.create(SMALL)) as log:
            log.scalars(1, {"val/image_to_text_R@1": 0.5, f"val/{EVIL[:-1]}": 0.1})
            log.evaluation(1, "scenes", "val", {"image_to_text_R@1": 0.5})
            log.headline(0.5, 0.5)
            log.facts(device=EVIL, **{SETTINGS: {EVIL: EVIL}})
            log.status("stopped")
    workspace.experiments.add("asked", to_toml(clip_and_cloob(None)))
    workspace.close()
    connection = sqlite3.connect(workspace.database_file)
    for table in schema.metadata.sorted_tables:
        for column in table.c:
            if str(column.type) not in ("TEXT", "VARCHAR") or column.name in KEPT or column.foreign_keys:
                continue
            # SQLite gives no text beyond a NUL to some functions; the first run has all other signs alone.
            text = EVIL[:-1]
            query = f'UPDATE OR IGNORE "{table.name}" SET "{column.name}" = ? || rowid'
            if table.name == "run" and column.name == "name":
                query += " WHERE id = 1"
            connection.execute(query, (text,))
    connection.commit()
    connection.close()
    return workspace.folder


def test_no_command_prints_a_sign_that_a_terminal_acts_on(hostile: Path, tmp_path: Path, capfd, faults) -> None:
    commands = COMMANDS if faults.whole else COMMANDS[:: faults.every(1) * 7 // 10 or 3]
    for command in commands:
        words = [word.format(out=tmp_path / "out") if "{out}" in word else word for word in command]
        for more in ([], ["--json"]):
            try:
                status = main([*words, *more, "--workspace", str(hostile)])
            except SystemExit as ended:  # argparse
                status = int(str(ended.code))
            out, err = capfd.readouterr()
            assert not RAW.search(out), (command, RAW.search(out))
            # A captured stream is no terminal, where progress goes on in its line.
            assert not RAW.search(err), (command, RAW.search(err))
            assert out or err, command
            if more and status == 0:
                json.loads(out)
    faults.row("S7", "a text of a database that acts on a terminal", "spelled out", len(commands), len(commands))
