"""Addresses of places: read as written, and nothing in them is an option or a command."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from typing import Any

import pytest

from trainer import config
from trainer.places import slurm
from trainer.places.channel import Channel, packed, serve, unpacked
from trainer.places.remote_host import OutOfReach, PlaceError, parse
from trainer.places.source import check_name
from trainer.places.ssh import command_line
from trainer.places.wheel import needed_packages, wheel
from trainer.store import Workspace


@pytest.mark.parametrize(
    "address",
    [
        "ssh://host",
        "ssh://me@host:2222/home/me/venv/bin/python",
        "ssh://me@[fe80::1]:22/opt/my python/bin/python3",
        "ssh://me@host?workspace=~/runs&config=/home/me/.ssh/other",
        "slurm://me@login/opt/python?partition=gpu&gpus=2&time=8:00:00&account=lab-1",
        "slurm:///opt/python?cpus=4",
        "slurm://host?partition=gpu&qos=dev&mem=16G&nodes=1&constraint=a100&exclude=node1,node2",
        "ray://host:8265/opt/python?storage=/shared/runs&cpus=4&gpus=1",
    ],
)
def test_an_address_is_read_as_it_is_written(address: str) -> None:
    place = parse("box", address)
    assert place.address == address
    assert parse("box", place.address) == place


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ftp://host", "is not an address"),
        ("ssh://", "names no host"),
        ("ssh://-oProxyCommand=x", "names no host"),
        ("ssh://-l@host", "names no host"),
        ("ssh://me:secret@host", "A password has no place"),
        ("ssh://host:99999", "is not an address"),
        ("ssh://host/bin/python%0arm", "is not a path"),
        ("ssh://host?proxy=x", "is not an option of ssh"),
        ("ssh://host?workspace=relative", "write a path"),
        ("slurm://host?partition=a b", "write a single word"),
        ("slurm://host?partition=--wrap", "write a single word"),
        ("slurm://host?wrap=ls", "is not an option of slurm"),
        ("slurm://host?array=1-4", "but those that decide what is started"),
        ("ray://host", "needs a folder"),
    ],
)
def test_what_cannot_be_an_address_is_refused(address: str, words: str) -> None:
    with pytest.raises(PlaceError, match=words):
        parse("box", address)


def test_a_name_is_a_plain_word() -> None:
    for name in ("", "-x", "a b", "../x", "x" * 41):
        with pytest.raises(PlaceError, match="cannot name a place"):
            parse(name, "ssh://host")


def test_the_line_for_the_other_computer_is_quoted() -> None:
    place = parse("box", "ssh://me@host/opt/my python")
    *_, login, line = command_line(place, [place.python, "-c", "print('a; rm -rf b')", "$(x)"])
    assert login == "me@host"
    assert line == "'/opt/my python' -c 'print('\"'\"'a; rm -rf b'\"'\"')' '$(x)'"


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "snapshots/../x", "snapshots/a", "snapshots/a/b/c", "run.json", "explorer.db", ""]
)
def test_only_files_of_a_run_are_read(name: str) -> None:
    with pytest.raises(PlaceError, match="is not a file of a run"):
        check_name(name)


def test_the_wheel_holds_the_trainer_and_is_the_same_each_time() -> None:
    sent = wheel()
    names = set(zipfile.ZipFile(io.BytesIO(sent.content)).namelist())
    assert {"trainer/__main__.py", "trainer/places/ssh.py", "trainer/assets/presets/clip-scenes.toml"} <= names
    assert not [name for name in names if name.startswith(("explorer/", "tests/")) or "__pycache__" in name]
    wheel.cache_clear()
    assert wheel().digest == sent.digest
    assert {"torch", "numpy", "sqlalchemy"} <= set(needed_packages())
    assert not [name for name in needed_packages() if name.startswith("pyside")]


def test_a_question_is_answered_and_a_false_answer_ends_the_channel() -> None:
    def answer(question: Any) -> tuple[dict[str, Any], bytes]:
        if question["what"] == "bad":
            raise PlaceError("It cannot be\n done.")
        return {"x": question["y"]}, b"\n\0bytes"

    ends = _Pipes()
    threading.Thread(target=serve, args=(answer, ends.questions, ends.answers), daemon=True).start()
    channel = Channel(ends.asked, ends.told, lambda: "It is gone.", ends.close)
    assert channel.ask("good", y=3) == ({"x": 3, "id": 1, "bytes": 7}, b"\n\0bytes")
    with pytest.raises(PlaceError, match=r"It cannot be\\n done"):
        channel.ask("bad")
    ends.answers.write(json.dumps({"id": 9, "bytes": 0}).encode() + b"\n")
    with pytest.raises(OutOfReach, match="another question"):
        channel.ask("good", y=3)
    with pytest.raises(OutOfReach, match="It is gone"):
        channel.ask("good", y=3)
    assert unpacked(packed({"what": "x"})) == {"what": "x"}
    with pytest.raises(PlaceError):
        unpacked("!")


class _Pipes:
    def __init__(self) -> None:
        import os

        ends = [os.pipe() for _ in range(2)]
        self.questions, self.asked = os.fdopen(ends[0][0], "rb"), os.fdopen(ends[0][1], "wb")
        self.told, self.answers = os.fdopen(ends[1][0], "rb"), os.fdopen(ends[1][1], "wb", buffering=0)

    def close(self) -> None:
        self.asked.close()


def test_flags_reach_sbatch_but_for_those_that_let_it_start_another_program(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    run, words = workspace.runs.create(config.Run(name="queued")), []
    monkeypatch.setattr(slurm, "_run", lambda *arguments, **_: words.extend(arguments) or "17")
    assert slurm.submit(workspace, run, {"qos": "dev", "mem": "16G", "wrap": "ls", "partition": "gpu"}) == "17"
    assert {"--qos=dev", "--mem=16G", "--partition=gpu"} <= set(words)
    assert not any("wrap" in word for word in words)
    workspace.close()
