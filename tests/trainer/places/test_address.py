"""Addresses of places: read as written, and nothing in them is an option or a command."""

import io
import json
import os
import sys
import threading
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from trainer import config
from trainer.places import bindings, packages, slurm, ssh
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
        ("slurm://host?comment=a%0ab", "write one short line"),
        ("slurm://host?array=1-4", "that decide what is started. Start a run for each task"),
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


@pytest.mark.slow
def test_a_prologue_is_part_of_the_address_and_runs_before_each_command() -> None:
    lines = "export A='b c'\necho noise"
    host = parse("lab", "slurm:///opt/python?gpus=1").changed(prologue=lines, container="~/a.sif")
    assert parse("lab", host.address) == host
    assert host.changed(prologue="", container="").address == "slurm:///opt/python?gpus=1"
    assert ssh.run(host, ["sh", "-c", 'echo "$A $1"', "sh", "d  e"]) == b"b c d  e\n"
    with pytest.raises(PlaceError, match="the line of the prologue failed: cat /none"):
        ssh.run(host.changed(prologue="cat /none"), ["true"])
    with pytest.raises(PlaceError, match="not an option of ssh"):
        parse("box", "ssh://host").changed(container="/a.sif")


@pytest.mark.parametrize(
    ("options", "script"),
    [
        ({"prologue": "module load a"}, "set -e\nmodule load a\nset +e\n"),
        ({"container": "~/a b.sif", "gpus": "1"}, " exec --nv --bind "),
        ({"container": "~/a b.sif"}, """ "$HOME"/'a b.sif' python3 -P -m trainer fit 1 """),
        ({"nodes": "2"}, 'export MASTER_ADDR="$(hostname)"'),
        ({"nodes": "2"}, "exec srun --kill-on-bad-exit=1 "),
    ],
)
def test_the_script_of_a_job(options, script, tmp_path, monkeypatch):
    with closing(Workspace(tmp_path)) as workspace:
        run, sent = workspace.runs.create(config.Run(name="queued", ranks=4)), {}
        monkeypatch.setattr(slurm, "_run", lambda *words, stdin: sent.update(words=words, script=stdin) or "17")
        slurm.submit(workspace, run, options)
        assert script in sent["script"]
        assert ("--ntasks-per-node=2" in sent["words"]) == ("--signal=TERM@90" in sent["words"]) == ("nodes" in options)


def test_ranks_that_nodes_cannot_share_are_refused(tmp_path):
    with closing(Workspace(tmp_path)) as workspace:
        run = workspace.runs.create(config.Run(name="queued", ranks=4))
        with pytest.raises(PlaceError, match="4 processes cannot be shared by 3 nodes"):
            slurm.submit(workspace, run, {"nodes": "3"})


@pytest.mark.parametrize(
    ("answer", "options", "expected"),
    [
        ("main*|1-00:00:00|30:00|up|2|(null)", {}, ["main: the site's default, 30:00 unless time is named"]),
        ("a|infinite|n/a|up|4|gpu:a100:4", {}, ["a: infinite unless time is named", "!partition: the site has no"]),
        ("a*|1:00|n/a|down|4|(null)", {}, ["!a: the site's default"]),
        ("a*|1:00|n/a|up|4|(null)", {"partition": "b"}, ["a: the site's default", "!b: no such partition"]),
    ],
)
def test_what_a_site_has_and_gives_by_default(answer, options, expected):
    rows = slurm.partitions(answer, options)
    shown = [f"{'!' * (row['state'] == 'broken')}{row['name']}: {row['value']}" for row in rows]
    assert len(shown) == len(expected)
    assert all(line.startswith(start) for line, start in zip(shown, expected, strict=True)), shown


UV = """#!/bin/sh
echo "$@" >> {log}
case "$1" in
venv) mkdir -p "${{5%/}}/bin" && ln -sf {python} "$5/bin/python";;
pip)
    echo "Downloading torch (2.0MiB)"
    echo "Downloaded torch"
    [ ! -e {log}.bad ] || {{ echo "no wheel fits"; exit 2; }};;
esac
"""


@pytest.mark.slow
def test_training_is_installed_there_by_uv(tmp_path, monkeypatch):
    log, program, home = tmp_path / "log", tmp_path / "bin" / "uv", tmp_path / "home"
    program.parent.mkdir()
    program.write_text(UV.format(log=log, python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    # What the stand-in has not installed is told at the end.
    monkeypatch.setattr(ssh, "check", lambda host: checked.append(host.python))
    host, told, checked = parse("lab", f"slurm://{sys.executable}"), [], []
    installed = packages.install(host, lambda share, note: told.append(note), build="cu128")
    folder = home / ".local/share/contrastive-explorer"
    assert bindings.host_of("lab").python == installed.python == f"{folder}/python/bin/python"
    assert checked == [installed.python]
    assert "downloading: 2 of 2 MB" in told
    venv, pip = log.read_text().splitlines()
    assert venv == f"venv --allow-existing --python >=3.11 {folder}/python"
    assert pip.startswith(
        f"pip install --only-binary :all: --python {installed.python} --torch-backend cu128 {folder}/"
    )
    assert Path(pip.split()[-1]).read_bytes() == wheel().content
    Path(f"{log}.bad").touch()
    with pytest.raises(PlaceError, match="uv on lab could not install the packages: no wheel fits"):
        packages.install(host, lambda share, note: None, build="cpu")
    with pytest.raises(PlaceError, match="has no card to ask"):
        packages.install(host.changed(gpus="1"), lambda share, note: None)
    bindings.remove("lab")


@pytest.mark.slow
def test_a_refusal_of_several_lines_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'sbatch: no such' >&2\necho 'partition' >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    workspace = Workspace(tmp_path / "workspace")
    run = workspace.runs.create(config.Run(name="queued"))
    with pytest.raises(PlaceError, match="sbatch refused: sbatch: no such partition"):
        slurm.submit(workspace, run, {})
    assert workspace.runs.get(run).reason == "sbatch refused: sbatch: no such partition"
    workspace.close()


def test_values_of_flags_are_what_sbatch_takes_and_some_flags_have_none(tmp_path, monkeypatch):
    address = "slurm://host?exclude=node[01-03]&mail-user=me@site.org&constraint=a100%26ib&comment=a%20b%2Bc&exclusive="
    place = parse("lab", address.removesuffix("="))
    assert place.address == address
    assert parse("lab", address) == place == place.changed(qos="dev").changed(qos="")
    workspace = Workspace(tmp_path)
    run, given = workspace.runs.create(config.Run(name="queued")), []
    monkeypatch.setattr(slurm, "_run", lambda *arguments, **_: given.extend(arguments) or "17")
    assert slurm.submit(workspace, run, place.options) == "17"
    assert given[-5:] == [
        "--exclude=node[01-03]", "--mail-user=me@site.org", "--constraint=a100&ib", "--comment=a b+c", "--exclusive",
    ]  # fmt: skip
    workspace.close()


def test_flags_reach_sbatch_but_for_those_that_let_it_start_another_program(tmp_path, monkeypatch):
    workspace = Workspace(tmp_path)
    run, words = workspace.runs.create(config.Run(name="queued")), []
    monkeypatch.setattr(slurm, "_run", lambda *arguments, **_: words.extend(arguments) or "17")
    assert slurm.submit(workspace, run, {"qos": "dev", "mem": "16G", "wrap": "ls", "partition": "gpu"}) == "17"
    assert {"--qos=dev", "--mem=16G", "--partition=gpu"} <= set(words)
    assert not any("wrap" in word for word in words)
    workspace.close()
