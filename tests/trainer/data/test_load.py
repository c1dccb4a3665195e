"""From folders, tables and Scenes to pairs: what is used, what is reported, and when images are decoded again."""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from trainer import config
from trainer.data import DataError, DataSplits, load, load_untrained, prepared, read_image
from trainer.data.dataset_index import listing
from trainer.data.folder import folder_sources
from trainer.data.workers import spread
from trainer.store.disk import SPARE

pytestmark = pytest.mark.slow


def quiet(share: float, note: str) -> None:
    assert 0 <= share <= 1
    assert note


def read(data: config.Data, workspace: Path, progress: Callable[[float, str], None] = quiet) -> DataSplits:
    return load(data, image_size=32, workspace_folder=workspace, progress=progress)


def add_pair(folder: Path, name: str, caption: str, shade: int = 100) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (40, 30), (shade, 255 - shade, 50)).save(path)
    path.with_suffix(".txt").write_text(caption, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "my pictures"
    for index in range(40):
        add_pair(root, f"{index % 3}/{index:02}.png", f"number {index}\n", shade=index)
    return root


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def test_scenes_are_drawn_decoded_and_come_with_a_task(workspace: Path) -> None:
    splits = read(config.Scenes(train_pairs=64, heldout_pairs=16), workspace)
    assert list(splits.heldout) == ["renderings", "combinations"]
    assert [len(pairs) for pairs in (splits.train, *splits.heldout.values())] == [64, 16, 16]
    assert splits.report.used == 96
    assert splits.report.problems == []
    for pairs in (splits.train, *splits.heldout.values()):
        assert pairs.name == "scenes"
        assert pairs.images.shape == (len(pairs), 32, 32, 3)
        assert (pairs.images[-1] == read_image(Path(pairs.paths[-1]), 32)).all()
        assert pairs.labels == pairs.metadata["subject_color"]
        assert set(pairs.labels) <= set(splits.suite.classes)
    assert len({pairs.fingerprint for pairs in (splits.train, *splits.heldout.values())}) == 3


def test_the_pixels_cannot_be_written_to(folder: Path, workspace: Path) -> None:
    images = read(config.Folder(path=str(folder)), workspace).train.images
    assert isinstance(images, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        images[0] = 0


def test_a_folder_gives_its_pairs_in_order_and_shares_them_out(folder: Path, workspace: Path) -> None:
    splits = read(config.Folder(path=str(folder), heldout_share=0.3), workspace)
    train, heldout = splits.train, splits.heldout["heldout"]
    assert train.name == "my-pictures"
    assert splits.suite is None
    assert train.paths == sorted(train.paths)
    assert len(train) + len(heldout) == 40 == splits.report.used
    assert 4 <= len(heldout) <= 20
    assert not set(train.paths) & set(heldout.paths)
    for row, path in enumerate(train.paths):
        assert train.captions[row] == f"number {int(Path(path).stem)}"
        assert train.images[row, 0, 0, 0] == int(Path(path).stem)


def test_a_pair_stays_on_its_side_when_others_come(folder: Path, workspace: Path) -> None:
    before = set(read(config.Folder(path=str(folder), heldout_share=0.3), workspace).heldout["heldout"].paths)
    for index in range(40, 60):
        add_pair(folder, f"later/{index}.png", "new")
    after = set(read(config.Folder(path=str(folder), heldout_share=0.3), workspace).heldout["heldout"].paths)
    assert before == {path for path in after if "later" not in path}
    assert len(after) > len(before)


def test_smaller_training_shares_are_part_of_larger_ones_and_hold_the_same_pairs_out(tmp_path: Path, workspace: Path):
    for number in range(20):
        add_pair(tmp_path, f"{number}.png", str(number))
    table = tmp_path / "many.csv"
    table.write_text("filepath,title\n" + "".join(f"{n}.png,words {n} {k}\n" for n in range(20) for k in "ab"))
    data = config.Table(path=str(table), heldout_share=0.3)
    found = {s: read(replace(data, train_share=s), workspace) for s in (1.0, 0.5, 0.25, 0.0001)}
    whole = found[1.0].train
    pictures = {share: set(splits.train.paths) for share, splits in found.items()}
    n = len(pictures[1.0])
    assert {s: len(paths) for s, paths in pictures.items()} == {
        1.0: n, 0.5: round(n / 2), 0.25: round(n / 4), 0.0001: 1
    }  # fmt: skip
    assert pictures[0.0001] < pictures[0.25] < pictures[0.5] < pictures[1.0]
    for splits in found.values():
        assert splits.heldout["heldout"].paths == found[1.0].heldout["heldout"].paths
        kept = [row for row, path in enumerate(whole.paths) if path in set(splits.train.paths)]
        assert splits.train.captions == [whole.captions[row] for row in kept], "with all captions, in order"
        assert splits.training_pairs == len(splits.train) == 2 * len(set(splits.train.paths))


def test_a_share_of_scenes_draws_nothing_again_and_is_known_before_its_pictures(workspace: Path):
    part = config.Scenes(train_pairs=64, heldout_pairs=16, train_share=0.25)
    options = {"image_size": 32, "workspace_folder": workspace, "progress": lambda share, note: None}
    first, ahead = load_untrained(part, **options)
    assert [[*splits.heldout] for splits in (first, ahead)] == [["renderings"], ["renderings", "combinations"]]
    whole, share = read(replace(part, train_share=1.0), workspace).train, read(part, workspace).train
    assert len(list((workspace / "data").iterdir())) == 1
    assert not list(load_untrained(part, **options))
    assert (ahead.train.captions, ahead.train.paths) == (share.captions, share.paths)
    assert len(share) == 16
    assert set(share.paths) < set(whole.paths)


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_two_pairs_are_one_to_learn_and_one_to_validate(share: float, tmp_path: Path, workspace: Path) -> None:
    for name in ("a.png", "b.png"):
        add_pair(tmp_path / "two", name, name)
    splits = read(config.Folder(path=str(tmp_path / "two"), heldout_share=share), workspace)
    assert len(splits.train) == len(splits.heldout["heldout"]) == 1


def test_two_pictures_with_several_captions_are_one_to_learn_and_one_to_validate(tmp_path: Path, workspace: Path):
    for name in ("a.png", "b.png"):
        add_pair(tmp_path, name, name)
    table = tmp_path / "few.csv"
    table.write_text("filepath,title\n" + "".join(f"{name}.png,words {n}\n" for n in range(3) for name in "ab"))
    splits = read(config.Table(path=str(table), heldout_share=0.9), workspace)
    assert len(splits.train) == len(splits.heldout["heldout"]) == 3
    assert not set(splits.train.paths) & set(splits.heldout["heldout"].paths)


def test_a_second_folder_may_be_held_out(folder: Path, tmp_path: Path, workspace: Path) -> None:
    add_pair(tmp_path / "other", "a.png", "another")
    splits = read(config.Folder(path=str(folder), heldout_path=str(tmp_path / "other")), workspace)
    assert len(splits.train) == 40
    assert splits.heldout["heldout"].captions == ["another"]


def test_bad_pairs_are_named_and_the_others_used(folder: Path, workspace: Path) -> None:
    (folder / "0/00.txt").unlink()
    (folder / "1/01.txt").write_text(" \n", encoding="utf-8")
    (folder / "2/02.txt").write_bytes(b"caf\xe9\xff\xfe\x81")
    (folder / "0/03.txt").write_text("x" * 200_000, encoding="utf-8")
    (folder / "1/04.png").write_bytes(b"no image")
    (folder / "2/05.png").write_bytes((folder / "2/05.png").read_bytes()[:60])
    (folder / "notes.md").write_text("passed over", encoding="utf-8")
    (folder / ".hidden.png").write_bytes(b"passed over")
    splits = read(config.Folder(path=str(folder)), workspace)
    reasons = dict(splits.report.problems)
    assert sorted(reasons) == ["0/00.png", "0/03.png", "1/01.png", "1/04.png", "2/02.png", "2/05.png"]
    assert "no caption 00.txt" in reasons["0/00.png"]
    assert "empty" in reasons["1/01.png"]
    assert "not UTF-8" in reasons["2/02.png"]
    assert "longer than" in reasons["0/03.png"]
    assert "supported format. JPEG, PNG" in reasons["1/04.png"]
    assert "damaged" in reasons["2/05.png"]
    assert splits.report.used == 34
    for pairs in (splits.train, splits.heldout["heldout"]):
        for path, caption, image in zip(pairs.paths, pairs.captions, pairs.images, strict=True):
            assert caption == f"number {int(Path(path).stem)}"
            assert image[0, 0, 0] == int(Path(path).stem)


def test_a_folder_without_use_says_what_is_missing(tmp_path: Path, workspace: Path) -> None:
    with pytest.raises(DataError, match="is not a folder"):
        read(config.Folder(path=str(tmp_path / "nowhere")), workspace)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no image in"):
        read(config.Folder(path=str(tmp_path / "empty")), workspace)
    for name in ("a.png", "b.png"):
        add_pair(tmp_path / "broken", name, "caption").write_bytes(b"")
    with pytest.raises(DataError, match=r"no pair to train on.*The first of 2 problems: [ab].png: The file is not"):
        read(config.Folder(path=str(tmp_path / "broken")), workspace)


def inodes(workspace: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_ino for path in (workspace / "cache").glob("*/images.npy")}


def test_images_are_decoded_once(folder: Path, workspace: Path) -> None:
    first = read(config.Folder(path=str(folder)), workspace)
    caches, notes = inodes(workspace), []
    again = read(config.Folder(path=str(folder)), workspace, lambda share, note: notes.append(note))
    assert notes == []
    assert inodes(workspace) == caches
    assert again.train.fingerprint == first.train.fingerprint
    load(config.Folder(path=str(folder)), image_size=48, workspace_folder=workspace, progress=quiet)
    assert len(inodes(workspace)) == 4


@pytest.mark.parametrize("change", ["image", "caption", "added", "removed", "time"])
def test_any_change_is_seen(change: str, folder: Path, workspace: Path) -> None:
    before = read(config.Folder(path=str(folder)), workspace).train
    image = Path(before.paths[3])
    if change == "image":
        add_pair(image.parent, image.name, before.captions[3], shade=222)
    elif change == "caption":
        image.with_suffix(".txt").write_text("something else", encoding="utf-8")
    elif change == "added":
        for index in range(10):
            add_pair(folder, f"more/{index}.png", "more")
    elif change == "removed":
        image.unlink()
    elif change == "time":
        os.utime(image, ns=(1, 1))
    caches = inodes(workspace)
    after = read(config.Folder(path=str(folder)), workspace).train
    assert set(inodes(workspace)) > set(caches)
    # The fingerprint is of the content: a mere touch decodes again but changes nothing.
    assert (after.fingerprint == before.fingerprint) == (change == "time")


def test_the_fingerprint_does_not_depend_on_the_place(folder: Path, tmp_path: Path, workspace: Path) -> None:
    here = read(config.Folder(path=str(folder)), workspace).train
    moved = folder.rename(tmp_path / "elsewhere")
    assert read(config.Folder(path=str(moved)), workspace).train.fingerprint == here.fingerprint


def test_a_stop_while_preparing_leaves_nothing_that_looks_whole_and_loses_nothing(
    folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "_CHUNK", 7)
    parts: list[int] = []
    decode = prepared.decode_part

    def counting(part: prepared.Part, *others: object) -> prepared.DonePart:
        parts.append(len(part.places))
        return decode(part, *others)

    monkeypatch.setattr(prepared, "decode_part", counting)

    def stop(share: float, note: str) -> None:
        if "21 of" in note:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(config.Folder(path=str(folder)), workspace, stop)
    assert all(name.startswith(".") for name in inodes(workspace))
    parts.clear()
    splits = read(config.Folder(path=str(folder)), workspace)
    assert splits.report.used == 40
    assert sum(parts) <= 40 - 21
    for pairs in (splits.train, *splits.heldout.values()):
        for row, path in enumerate(pairs.paths):
            assert (pairs.images[row] == read_image(path, 32)).all()
    assert not [name for name in inodes(workspace) if name.startswith(".")]


def test_a_cache_without_room_is_refused_before_it_is_begun(
    folder: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nearly_full = namedtuple("usage", "free")(SPARE + 1)
    monkeypatch.setattr(prepared.shutil, "disk_usage", lambda folder: nearly_full)
    with pytest.raises(DataError, match=r"need 0 MiB and .* 64 MiB free"):
        load(
            config.Folder(path=str(folder), heldout_share=0.01),
            image_size=32,
            workspace_folder=workspace,
            progress=quiet,
            loading="prepared",
        )


def test_caches_unused_for_a_month_go(folder: Path, workspace: Path) -> None:
    read(config.Folder(path=str(folder)), workspace)
    old = workspace / "cache" / "0123456789abcdef-32"
    old.mkdir()
    (old / "images.npy").write_bytes(b"")
    os.utime(old, (1, 1))
    read(config.Folder(path=str(folder)), workspace)
    assert not old.exists()
    assert len(inodes(workspace)) == 2


def test_a_workspace_that_cannot_be_written_is_said_so(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be written"):
        read(config.Folder(path=str(folder)), tmp_path / "file")


def table(folder: Path, text: str, name: str = "pairs.csv", **options: str) -> config.Table:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return config.Table(path=str(folder / name), **options)


@pytest.mark.parametrize(("separator", "name"), [(",", "a.csv"), ("\t", "a.tsv"), (";", "a.csv")])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_tables_of_every_habit(
    separator: str, name: str, mark: str, ending: str, folder: Path, workspace: Path
) -> None:
    rows = [["title", "filepath", "label"]]
    rows += [
        [f'"number {i}{separator} ""quoted"""', f"{i % 3}/{i:02}.png", "even" if i % 2 == 0 else "odd"]
        for i in range(40)
    ]
    splits = read(table(folder, mark + ending.join(map(separator.join, rows)) + ending + ending, name), workspace)
    assert splits.report.problems == []
    assert splits.report.used == 40
    assert splits.train.name == "a"
    for path, caption, label in zip(splits.train.paths, splits.train.captions, splits.train.labels, strict=True):
        number = int(Path(path).stem)
        # A caption is one line: white space, tabs too, becomes single spaces.
        assert caption == " ".join(f'number {number}{separator} "quoted"'.split())
        assert label == ("even" if number % 2 == 0 else "odd")
    assert splits.suite.classes == ("even", "odd")


def test_columns_are_named_by_the_person(folder: Path, workspace: Path) -> None:
    lines = "".join(f"{folder}/{i % 3}/{i:02}.png,text {i}\n" for i in range(10))
    splits = read(
        table(folder, "img,txt\n" + lines, image_column="img", caption_column="txt", separator=","), workspace
    )
    assert splits.report.used == 10
    assert splits.suite is None


FAULTS = {
    "no such column": (
        "image,title\na.png,b\n",
        r"unclear which column of .* names its images: it has 'image', 'title'. Set data.image_column",
    ),
    "empty": ("", "is empty"),
    "header only": ("filepath,title\n", "no usable line below its header"),
    "all lines bad": ("filepath,title\na.png\n", "line 2: It has 1 cells where the header names 2"),
    "monstrous cell": ("filepath,title\na.png," + "x" * 200_000 + "\n", "line 2: .*field larger"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_table_without_use_says_why(name: str, folder: Path, workspace: Path) -> None:
    text, reason = FAULTS[name]
    with pytest.raises(DataError, match=reason):
        read(table(folder, text), workspace)


def test_a_table_of_other_letters_or_none_is_refused(folder: Path, workspace: Path) -> None:
    (folder / "latin.csv").write_bytes(b"filepath,title\na.png,caf\xe9\xff\xfe\x81\n")
    with pytest.raises(DataError, match="UTF-8"):
        read(config.Table(path=str(folder / "latin.csv")), workspace)
    with pytest.raises(DataError, match="cannot be read"):
        read(config.Table(path=str(folder / "nothing.csv")), workspace)


def test_bad_lines_are_named_by_number(folder: Path, workspace: Path) -> None:
    good = "".join(f"{i % 3}/{i:02}.png,text\n" for i in range(10))
    bad = "only one cell\n0/00.png,\n,no image\nhttps://example.org/a.png,far\nmissing.png,gone\n"
    problems = dict(read(table(folder, "filepath,title\n" + good + bad), workspace).report.problems)
    assert sorted(problems) == ["line 12", "line 13", "line 14", "line 15", "missing.png"]
    assert "does not exist" in problems["missing.png"]
    assert "only files on this machine" in problems["line 15"]


def test_work_of_a_pool_that_died_is_done_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A module of its own, for the processes import the function by name.
    (tmp_path / "mortal.py").write_text(
        "import os\n"
        "def work(number):\n"
        "    if number == 5 and os.environ['PARENT'] != str(os.getpid()): os._exit(1)\n"
        "    return number * number\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("PARENT", str(os.getpid()))
    monkeypatch.syspath_prepend(str(tmp_path))
    import mortal

    assert sorted(spread(mortal.work, range(12), count=2)) == [number * number for number in range(12)]


def test_the_room_is_entered_without_torch() -> None:
    """Otherwise every drawing or decoding process would need seconds and half a gigabyte to start."""
    code = "import sys, trainer.data, trainer.data.prepared; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_captions_are_not_looked_for_again_where_files_were_listed(folder: Path, monkeypatch) -> None:
    """Each look costs as much as reading a caption."""
    looks: list[Path] = []
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda path: looks.append(path) or is_file(path))
    (folder / "0" / "00.png").with_suffix(".txt").rename(folder / "0" / "00.CAPTION")
    (folder / "1" / "01.png").with_suffix(".txt").rename(folder / "1" / "01.png.TXT")
    sources, problems = folder_sources(str(folder))
    assert ([source.caption for source in sources[:2]], len(sources), problems) == (["number 0", "number 3"], 40, [])
    assert looks == []


@pytest.mark.shared
def test_real_drawings_all_load(shared_data: Path, tmp_path: Path, workspace: Path) -> None:
    import tarfile

    with tarfile.open(shared_data / "emoji-pairs" / "val" / "0.tar") as archive:
        archive.extractall(tmp_path / "val", filter="data")
    assert len(folder_sources(str(tmp_path / "val"))[0]) == 536
    splits = read(config.Folder(path=str(tmp_path / "val"), heldout_share=0.2), workspace)
    assert splits.report.used == 536
    assert splits.report.problems == []


def test_the_command_prints_counts_examples_and_problems(
    folder: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.__main__ import main

    assert main(["data", "show", "--folder", str(folder), "--workspace", str(workspace)]) == 0
    assert "40 pairs used." in capsys.readouterr().out
    (folder / "0/00.txt").unlink()
    assert main(["data", "show", "--folder", str(folder), "--workspace", str(workspace), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["used"] == sum(shown["pairs"].values()) == 39
    assert len(shown["examples"]) == 10
    assert [problem["path"] for problem in shown["problems"]] == ["0/00.png"]


def test_the_command_writes_scenes(tmp_path: Path, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from trainer.__main__ import main

    few = ["--train-pairs", "64", "--heldout-pairs", "16", "--workspace", str(workspace)]
    assert main(["data", "scenes", *few]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert written.parent == workspace / "data"
    assert len(list(written.rglob("*.jpg"))) == 96
    assert main(["data", "scenes", *few, "--out", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / "train" / "00000.jpg").read_bytes() == (written / "train" / "00000.jpg").read_bytes()
    assert main(["data", "scenes", *few, "--cooccurrence", "2"]) == 2
    assert "too large" in capsys.readouterr().err


def test_listing_tells_how_many_there_are_while_it_reads(tmp_path: Path):
    for number in range(1_100):
        (tmp_path / "many" / f"{number % 7}").mkdir(parents=True, exist_ok=True)
        (tmp_path / "many" / f"{number % 7}" / f"{number}.png").touch()
        (tmp_path / "many" / f"{number % 7}" / f"{number}.txt").write_text(f"picture {number}")
    rows = "".join(f"{number}.png,picture {number}\n" for number in range(1_100))
    (tmp_path / "many.csv").write_text(f"filepath,title\n{rows}")
    (tmp_path / "many.jsonl").write_text('{"filepath": "a.png", "title": "a"}\n' * 1_100)
    told: dict[str, list[str]] = {}
    for data in (
        config.Folder(path=str(tmp_path / "many")),
        config.ClassFolder(path=str(tmp_path / "many")),
        config.Table(path=str(tmp_path / "many.csv")),
        config.Table(path=str(tmp_path / "many.jsonl")),
    ):
        notes = told.setdefault(f"{data.kind} {Path(data.path).suffix}", [])
        found = listing(data, tmp_path, lambda _share, note, notes=notes: notes.append(note))
        assert len(found.splits["train"]) == 1_100
    assert "Looking for images: 1,000 found" in told["folder "]
    assert "Reading captions: 1,000 of 1,100" in told["folder "]
    assert "Looking for images: 1,000 found" in told["classes "]
    assert "Reading rows: 1,000" in told["table .csv"]
    assert "Reading rows: 1,000" in told["table .jsonl"]

    def stop(_share: float, note: str) -> None:
        raise InterruptedError(note)

    with pytest.raises(InterruptedError, match="500 found"):
        listing(config.Folder(path=str(tmp_path / "many")), tmp_path, stop)


PATIENT = """
import os, time
def work(number):
    open(f"{os.environ['TOLD']}/{os.getpid()}", "w").close()
    time.sleep(60 if number else 0.1)
"""
UNGUARDED = """
from pathlib import Path
with Path("begun").open("a") as file:
    file.write("once ")
import patient
from trainer.data.workers import spread
print(sorted(spread(patient.work, range(12), count=2)))
"""

QUICK = """
from multiprocessing import parent_process
def work(job):
    assert parent_process() is not None, "no process helped"
    return job
"""


def test_a_script_without_a_main_guard_is_run_once(tmp_path: Path):
    """The processes that help it are spawned, and those run the file of the main module by themselves."""
    (tmp_path / "patient.py").write_text(QUICK)
    (tmp_path / "script.py").write_text(UNGUARDED)
    environment = os.environ | {"PYTHONPATH": f"{os.getcwd()}:{tmp_path}"}
    ended = subprocess.run(
        [sys.executable, "script.py"], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=90
    )
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    assert ended.stdout.split() == str(list(range(12))).split()
    assert (tmp_path / "begun").read_text() == "once "


KILLED = """
import patient
from trainer.data.workers import spread
if __name__ == "__main__":
    list(spread(patient.work, range(12), count=2))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9")
def test_processes_of_a_killed_parent_end(tmp_path: Path):
    (tmp_path / "patient.py").write_text(PATIENT)
    (tmp_path / "killed.py").write_text(KILLED)
    told = tmp_path / "told"
    told.mkdir()
    environment = os.environ | {"TOLD": str(told), "PYTHONPATH": f"{os.getcwd()}:{tmp_path}"}
    parent = subprocess.Popen([sys.executable, str(tmp_path / "killed.py")], env=environment)
    end = time.monotonic() + 60
    while len(list(told.iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    numbers = [int(file.name) for file in told.iterdir()]
    parent.kill()
    parent.wait()
    assert len(numbers) == 2
    while (left := list(filter(_lives, numbers))) and time.monotonic() < end:
        time.sleep(0.05)
    for number in left:
        os.kill(number, signal.SIGKILL)
    assert not left


def _lives(number: int) -> bool:
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("pairs", [0, 3])
def test_loading_leaves_the_garbage_collector_on(tmp_path: Path, pairs: int):
    for number in range(pairs):
        add_pair(tmp_path, f"{number}.png", f"picture {number}", 40 * number)
    with contextlib.nullcontext() if pairs else pytest.raises(DataError):
        read(config.Folder(path=str(tmp_path)), tmp_path / "ws")
    assert gc.isenabled()
