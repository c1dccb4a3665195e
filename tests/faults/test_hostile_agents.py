"""What an agent says through `trainer mcp`: values stay values, and lead to nothing outside of the workspace."""

import asyncio
import contextlib
import dataclasses
import io
import sqlite3
import subprocess
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lazily import lazily
from tests.nightly import few_plain, nightly_except
from trainer import config
from trainer.__main__ import main
from trainer.config import presets
from trainer.config.fields import field_type

lazily("mcp", reason="the extra [mcp] is not installed")
tools = lazily("trainer.agents.mcp_server")

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(1_800)]

WORDS = (
    *("", " ", "-", "--", "--help", "--out=/tmp/x", "-h", "--plugin=/tmp/x.py", "--workspace=/", "@/etc/passwd"),
    *("../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "~root", "$(id)", "`id`", "; id", "1; id", "1\n2"),
    *("\x1b[2J", "\x00", "\u202e", "\ud800", "x" * 20_000, "9" * 5_000, "1e999", "nan", "#1", "#0", "#-1", "0x1"),
    *("V@5", "V:5", "%s%s%n", "{0.__class__}", "\uff0d\uff0dout", "V\u0000", "V --out /tmp/x"),
)
"""Names of runs, charts and presets, and texts to search for."""
CHANGES = (
    *("data.path=secret", "data.path=/etc", "data.kind=folder", "model.name=hf-hub:evil/x", "model.pretrained=x"),
    *("data.heldout_path=..", "model.tokenizer=evil/x", "name=../../x", "data.image_folder=.", "data = {path='x'}"),
    *("=", "", "data", "__class__=1", "data.__class__.x=1", "--out=x", "optimizer.epochs=1e999"),
    *("data=torchvision", "data=vectors", "model=open_clip", " data = folder", "data=table"),
    *("optimizer.batch_size=-1", "model.image_size=100000000", "DATA.PATH=x", "data . path=x", "data.path =x"),
)
"""What a new run shall have in the place of its preset's."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with a run of vectors."""
    folder = tmp_path_factory.mktemp("agents")
    rows = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    np.save(folder / "a.npy", rows)
    words = ["open", "vectors", "--image", str(folder / "a.npy"), "--text", str(folder / "a.npy"), "--name", "V"]
    assert main([*words, "--workspace", str(folder / "ws")]) == 0
    return folder / "ws"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the commands in this process: starting one for each word would take minutes."""

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(command[command.index("trainer") + 1 :])
            except SystemExit as end:  # of argparse
                code = int(end.code or 0)
            except Exception:
                code, _ = 1, traceback.print_exc(file=err)
        said = err.getvalue() if "Traceback" not in err.getvalue() else err.getvalue().replace("\n", " | ")
        return subprocess.CompletedProcess(command, code, out.getvalue().encode(), said.encode())

    monkeypatch.setattr(tools.safe_subprocess, "run", run)


def _asked(server: Any, tool: str, **given: Any) -> str:
    """Return the words of a refusal; empty if the call was answered."""
    try:
        answer = asyncio.run(server.call_tool(tool, given))
    except Exception as error:  # the SDK wraps whatever a tool raises
        return str(error) or type(error).__name__
    return str(answer) if getattr(answer, "is_error", getattr(answer, "isError", False)) else ""


def _state(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith("explorer.db-")]
    return {path.relative_to(folder).as_posix(): _content(path) for path in files}


def _content(path: Path) -> bytes:
    """Return the bytes of a file; of the database its rows, because SQLite moves them from its log when it closes."""
    if path.name != "explorer.db":
        return path.read_bytes()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return "\n".join(connection.iterdump()).encode()


@few_plain(
    1,
    "tool",
    nightly_except(
        ["show_run", "compare_runs", "analyze chart", "analyze runs", "search run", "search"],
        "show_run",
        "analyze chart",
    ),
)
def test_words_of_an_agent_change_nothing(tool: str, workspace: Path, faults) -> None:
    server = tools.server_of(workspace)
    before, told = _state(workspace), []
    for word in WORDS if faults.part < 100 else WORDS[::4]:  # each loads all commands
        name = tool.partition(" ")[0]
        given: dict[str, Any] = {
            "show_run": {"run": word},
            "compare_runs": {"runs": [word, "V"]},
            "analyze chart": {"chart": word, "runs": ["V"]},
            "analyze runs": {"chart": "gap", "runs": [word]},
            "search run": {"run": word, "text": "x"},
            "search": {"run": "V", "text": word},
        }[tool]
        told.append((word, _asked(server, name, **given)))
    bad = [(word[:40], words) for word, words in told if "Traceback" in words]
    assert _state(workspace) == before
    faults.row(
        "S7",
        "a word of an agent (options, paths, control characters)",
        "a value, or refused",
        len(told),
        len(told) - len(bad),
    )
    assert not bad


@pytest.mark.parametrize("count", [0, -1, 10**9, 2**63, 10**30, 10**4_000])
def test_a_count_without_an_end_is_refused_or_bounded(count: int, workspace: Path) -> None:
    words = _asked(tools.server_of(workspace), "search", run="V", text="x", count=count)
    assert words
    assert "Traceback" not in words


def test_values_that_no_process_takes_are_refused(workspace: Path) -> None:
    server = tools.server_of(workspace)
    assert "too many" in _asked(server, "compare_runs", runs=["V"] * 2_000)
    assert "too long" in _asked(server, "compare_runs", runs=["V" * 9_000] * 900)
    assert _asked(server, "compare_runs", runs=[])
    assert _asked(server, "analyze", chart="gap", runs=[])


def test_an_agent_trains_on_nothing_that_a_preset_does_not_name(workspace: Path, monkeypatch, faults) -> None:
    monkeypatch.setattr("trainer.scheduling.launch.spawn", lambda *_, **__: pytest.fail("a trainer was started"))
    server = tools.server_of(workspace, allow_train=True)
    before, good = _state(workspace), 0
    names = ("../../etc/passwd", "/etc/passwd", "clip-scenes.toml", "-x", "\x1b[2J", "clip-scenes\x00", "*")
    for preset in names:
        assert _asked(server, "train", preset=preset), preset
    for change in CHANGES:
        words = _asked(server, "train", preset="clip-scenes", changes=[change])
        assert "Traceback" not in words
        assert words, change
        good += 1
    assert _state(workspace) == before
    faults.row("S7", "a change of a preset by an agent", "refused, nothing written or started", len(CHANGES), good)


@few_plain(1, "section", ["data", "model"])
def test_an_agent_changes_no_text_of_data_or_models(section: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in config.SECTIONS[section]:
        preset = dataclasses.replace(presets.preset("clip-scenes"), **{section: kind()})
        monkeypatch.setattr(presets, "preset", lambda _, preset=preset: preset)
        for field in dataclasses.fields(kind):
            if field_type(kind, field.name) is str:
                with pytest.raises(tools.CommandFailed, match="for a person to choose"):
                    tools.check_changes("clip-scenes", [f"{section}.{field.name}=x"])


def test_an_agent_changes_numbers_switches_and_choices() -> None:
    changes = ["optimizer.batch_size=64", "objective=infoloob", "data.train_pairs=512", "device=cpu", "seed=3"]
    tools.check_changes("clip-scenes", [*changes, "optimizer.algorithm=lars"])
