"""The server against the SDK's own client, over pipes: read-only unless allowed, and values are never options."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import writable_copy
from tests.lazily import lazily
from trainer.__main__ import main
from trainer.store import Workspace

lazily("mcp", reason="the extra [mcp] is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    """A workspace with one run of vectors, which takes no training."""
    folder = tmp_path_factory.mktemp("mcp")
    rows = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    np.save(folder / "a.npy", rows)
    np.save(folder / "b.npy", rows + 0.1)
    words = ["open", "vectors", "--image", str(folder / "a.npy"), "--text", str(folder / "b.npy"), "--name", "V"]
    assert main([*words, "--workspace", str(folder / "ws")]) == 0
    return folder / "ws"


@asynccontextmanager
async def connected(workspace: Path, *more: str) -> AsyncIterator[Any]:
    """Yield a session of the SDK's own client with the server of a workspace."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    words = ["-P", "-m", "trainer", "mcp", "--workspace", str(workspace), *more]
    # With the environment of the tests it is forked (tests/fork_server.py); the SDK would leave most of it out.
    here, folder = dict(os.environ), str(Path(__file__).parents[3])
    server = StdioServerParameters(command=sys.executable, args=words, env=here, cwd=folder)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        yield client


def talk(workspace: Path, calls: list[tuple[str, dict[str, Any]]], *more: str) -> tuple[dict[str, Any], list[Any]]:
    """Return the tools by name, and the result of each call."""

    async def session() -> tuple[dict[str, Any], list[Any]]:
        async with connected(workspace, *more) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(session())


def test_the_sdk_lists_tools_and_reads_runs_and_numbers(workspace: Path):
    tools, (runs, gap, wrong, option) = talk(
        workspace,
        [
            ("list_runs", {}),
            ("analyze", {"chart": "gap", "runs": ["V"]}),
            ("show_run", {"run": "nobody"}),
            ("show_run", {"run": "--help"}),
        ],
    )
    assert {"list_runs", "show_run", "compare_runs", "list_charts", "analyze", "search"} == set(tools)
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert '"name": "V"' in runs.content[0].text.replace('"name":"V"', '"name": "V"')
    image, text = np.load(workspace.parent / "a.npy"), np.load(workspace.parent / "b.npy")
    unit = [x / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True) for x in (image, text)]
    expected = float(np.linalg.norm(unit[0].mean(axis=0) - unit[1].mean(axis=0)))
    assert json.loads(gap.content[0].text)["runs"][0]["gap at 0"] == pytest.approx(expected, abs=1e-5)
    assert wrong.is_error
    assert "There is no run 'nobody'" in wrong.content[0].text
    assert option.is_error
    assert "begins with a hyphen" in option.content[0].text


def test_training_is_offered_only_where_allowed(asked: Workspace, tmp_path: Path):
    folder = writable_copy(asked.folder, tmp_path / "ws").folder
    elsewhere = {"preset": "clip-scenes", "name": "x", "changes": ["data=folder"]}
    calls = [("stop_run", {"run": "clip"}), ("evaluate", {"run": "clip"}), ("train", elsewhere)]
    tools, (stopped, evaluated, refused) = talk(folder, calls, "--allow-train")
    assert {"train", "stop_run", "evaluate"} <= set(tools)
    assert not tools["train"].annotations.read_only_hint
    assert stopped.structured_content["status"] == "finished", stopped.content
    assert evaluated.structured_content["result"][0]["dataset"] == "scenes", evaluated.content
    assert refused.is_error
    assert "for a person to choose" in refused.content[0].text


@pytest.mark.nightly
def test_an_agent_trains_and_evaluates_a_run(tmp_path: Path):
    small = ["data.train_pairs=64", "data.heldout_pairs=32", "model.image_size=32", "model.image_width=8"]
    small += ["optimizer.epochs=1", "optimizer.batch_size=32"]

    async def session() -> tuple[Any, list[Any], Any]:
        async with connected(tmp_path / "ws", "--allow-train") as client:
            given = {"preset": "clip-scenes", "name": "agent", "changes": small}
            started = await client.call_tool("train", given)
            status = ""
            while status not in ("finished", "failed"):
                await asyncio.sleep(3)
                (row,) = (await client.call_tool("list_runs", {})).structured_content["result"]
                status = row["status"]
            changed = await client.call_tool("train", given | {"name": "x", "changes": ["data.path=/etc"]})
            calls = [("evaluate", {"run": "agent"}), ("stop_run", {"run": "agent"}), ("compare_runs", {"runs": ["1"]})]
            calls += [("search", {"run": "agent", "text": "a red disc", "count": 3}), ("show_run", {"run": "agent"})]
            return started, [await client.call_tool(name, words) for name, words in calls], changed

    started, told, changed = asyncio.run(session())
    assert [one.content[0].text for one in (started, *told) if one.is_error] == []
    assert told[0].structured_content["result"][0]["dataset"] == "scenes"
    assert told[1].structured_content["status"] == "finished"
    run = Workspace(tmp_path / "ws").runs.get("agent")
    assert run.status == "finished"
    stored = Workspace(tmp_path / "ws").results.answers(run.id)
    assert any("image_to_text_R@1" in one.metrics for one in stored)
    assert changed.is_error
    assert "names a place" in changed.content[0].text
