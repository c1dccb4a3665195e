"""All common layouts of pairs: what is used, what is reported, and nothing else."""

import gzip
import http.server
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.builders import add_members, served
from tests.nightly import few_plain
from trainer import config
from trainer.analysis.progress import silent
from trainer.data import DataError, DataSplits, load, named
from trainer.data.kept_pairs import LINE
from trainer.data.pairs import ImportLog, Source
from trainer.data.tar_files import expand, read_members, shard_sources
from trainer.evaluation.task_data import choose_pairs
from trainer.format_detection import recognize

pytestmark = pytest.mark.slow

SIZE = 32


def png(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (SIZE, SIZE), (shade, 255 - shade, 50)).save(buffer, "PNG")
    return buffer.getvalue()


def read(data: config.Data, tmp_path: Path) -> DataSplits:
    return load(data, image_size=SIZE, workspace_folder=tmp_path / "workspace", progress=lambda share, note: None)


def shades(splits: DataSplits) -> dict[str, int]:
    """Return caption -> first channel of the image, over all splits."""
    every = [splits.train, *splits.heldout.values()]
    return {caption: int(part.images[i, 0, 0, 0]) for part in every for i, caption in enumerate(part.captions)}


def tar_of(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        add_members(archive, members.items())
    return path


def pairs_of(first: int, count: int) -> dict[str, bytes]:
    members = {}
    for number in range(first, first + count):
        members |= {f"{number:04}.png": png(number), f"{number:04}.txt": f"number {number}".encode()}
    return members


# -- a folder per class ----------------------------------------------------------------------------------------


def classes(root: Path) -> Path:
    for index, name in enumerate(("red_fox", "owl", "sea lion")):
        for number in range(6):
            path = root / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(20 * index + number))
    return root


def test_a_folder_per_class_makes_captions_and_a_task(tmp_path: Path) -> None:
    root = classes(tmp_path / "animals")
    (root / "stray.png").write_bytes(png(1))
    splits = read(config.ClassFolder(path=str(root), template="a drawing of a {}."), tmp_path)
    assert set(splits.train.captions) == {"a drawing of a red fox.", "a drawing of a owl.", "a drawing of a sea lion."}
    assert splits.suite.classes == ("owl", "red fox", "sea lion")
    assert splits.report.used == 18
    assert splits.report.problems == [("stray.png", "It is next to the folders of the classes, not in one of them.")]


def test_folders_train_and_test_are_taken_as_such(tmp_path: Path) -> None:
    classes(tmp_path / "animals" / "train")
    classes(tmp_path / "animals" / "test")
    splits = read(config.ClassFolder(path=str(tmp_path / "animals")), tmp_path)
    assert (len(splits.train), len(splits.heldout["heldout"])) == (18, 18)


def test_imagenets_numbers_become_names(tmp_path: Path) -> None:
    root = tmp_path / "imagenet"
    for number in range(1000):
        (root / f"n{number:08}").mkdir(parents=True)
    (root / "n00000001" / "a.png").write_bytes(png(1))
    (root / "n00000999" / "b.png").write_bytes(png(2))
    splits = read(config.ClassFolder(path=str(root), heldout_share=0.5), tmp_path)
    assert set(shades(splits)) == {"a photo of a goldfish.", "a photo of a toilet paper."}


# -- tables ----------------------------------------------------------------------------------------------------


def test_jsonl_is_read_line_by_line(tmp_path: Path) -> None:
    lines = []
    for number in range(10):
        (tmp_path / f"{number}.png").write_bytes(png(number))
        lines.append(json.dumps({"filepath": f"{number}.png", "title": f"number {number}", "where": "here", "n": 1}))
    lines[3:3] = ["{broken", "[1, 2]", json.dumps({"title": "no image"}), json.dumps({"filepath": "0.png"}), ""]
    table = tmp_path / "pairs.jsonl"
    table.write_text("\n".join(lines), encoding="utf-8")
    splits = read(config.Table(path=str(table)), tmp_path)
    assert shades(splits) == {f"number {number}": number for number in range(10)}
    assert splits.train.metadata["where"] == ["here"] * len(splits.train)
    assert [where for where, _ in splits.report.problems] == ["line 4", "line 5", "line 6", "line 7"]


@few_plain(1, "inside", ["path", "bytes", "struct"])
def test_parquet_with_paths_or_with_the_images_themselves(inside: str, tmp_path: Path) -> None:
    images: list = []
    for number in range(10):
        (tmp_path / f"{number}.png").write_bytes(png(number))
        images.append({"path": f"{number}.png", "bytes": png(number), "struct": {"bytes": png(number)}}[inside])
    table = pa.table({"image": images, "text": [[f"number {n}", f"shade {n}"] for n in range(10)], "label": ["x"] * 10})
    pq.write_table(table, tmp_path / "pairs.parquet", row_group_size=3)
    data = recognize(tmp_path / "pairs.parquet")
    assert (data.image_column, data.caption_column) == ("image", "text")
    splits = read(data, tmp_path)
    assert shades(splits) == {f"{word} {number}": number for number in range(10) for word in ("number", "shade")}
    from trainer.images import read_image

    # The text of a location, as a snapshot keeps it, leads back to the picture.
    assert (read_image(splits.train.paths[0], SIZE) == splits.train.images[0]).all()


def test_a_damaged_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read(config.Table(path=str(tmp_path / "a.parquet")), tmp_path)


def test_a_table_may_have_a_held_out_table(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 50)):
        rows = ["filepath,title"]
        for number in range(first, first + 5):
            (tmp_path / f"{number}.png").write_bytes(png(number))
            rows.append(f"{number}.png,number {number}")
        (tmp_path / f"{name}.csv").write_text("\n".join(rows), encoding="utf-8")
    splits = read(config.Table(path=str(tmp_path / "a.csv"), heldout_path=str(tmp_path / "b.csv")), tmp_path)
    assert (len(splits.train), splits.heldout["heldout"].captions[0]) == (5, "number 50")


# -- tars ------------------------------------------------------------------------------------------------------


def test_tars_by_braces_and_parts(tmp_path: Path) -> None:
    for number in range(3):
        tar_of(tmp_path / f"{number:02}.tar", pairs_of(10 * number, 10))
    tar_of(tmp_path / "extra.tar", pairs_of(40, 5))
    splits = read(config.Shards(path=f"{tmp_path}/{{00..02}}.tar::{tmp_path}/extra.tar"), tmp_path)
    assert shades(splits) == {f"number {n}": n for n in (*range(30), *range(40, 45))}
    from trainer.images import read_image

    assert (read_image(splits.train.paths[-1], SIZE) == splits.train.images[-1]).all()


def test_the_layout_of_clip_benchmark(tmp_path: Path) -> None:
    root = tmp_path / "benchmark"
    for split in ("train", "test"):
        members = {}
        for number in range(6):
            members |= {f"{number}.png": png(number), f"{number}.cls": f"{number % 2}".encode()}
        plain = tar_of(root / split / "0.tar", members)
        (root / split / "0.tar.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    (root / "classnames.txt").write_text("cat\ndog\n", encoding="utf-8")
    splits = read(recognize(root), tmp_path)
    assert (len(splits.train), len(splits.heldout["heldout"])) == (6, 6)
    assert splits.train.labels == ["cat", "dog"] * 3
    assert splits.train.captions[0] == "a photo of a cat."


def test_json_members_give_captions_and_metadata(tmp_path: Path) -> None:
    members = {"0.jpg": png(1), "0.json": json.dumps({"caption": "one", "size": 3, "deep": {}}).encode()}
    members |= {"1.webp": png(2), "1.json": b"{", "2.png": png(3), "3.txt": b"no image", "4.png": png(4), "4.txt": b" "}
    members |= {"5.png": png(5), "5.txt": b"five", "6.png": png(6), "6.cls": b"owl"}
    splits = read(config.Shards(path=str(tar_of(tmp_path / "a.tar", members)), heldout_share=0.3), tmp_path)
    assert shades(splits) == {"one": 1, "five": 5, "a photo of an owl.": 6}
    reasons = dict(splits.report.problems)
    assert "cannot be read" in reasons["a.tar/1"]
    assert "neither text nor class" in reasons["a.tar/2"]
    assert "no image" in reasons["a.tar/3"]
    assert "empty" in reasons["a.tar/4"]
    assert len(splits.report.problems) == 4


def test_tars_are_listed_once_until_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.data.kept_listing.WORTH_KEEPING", 2)
    odd = {"x.txt": b"a text", "y.gif.bin": b"?", "7.json": b'{"key": "value", "n": 3}'}
    tars = [tar_of(tmp_path / f"{n}.tar", pairs_of(4 * n, 4) | (odd if n else {})) for n in range(2)]
    data, log = config.Shards(path=str(tmp_path)), ImportLog()

    def listed(log: ImportLog | None = None) -> tuple[list[Source], list]:
        sources, problems = shard_sources(data, tmp_path / "workspace", silent, log)
        return [*sources["train"]], problems

    with monkeypatch.context() as patch:
        patch.setattr("trainer.data.kept_listing.written_once", lambda *kept: None)
        first = listed(log)
    assert len(first[0]) == 8
    assert first[1]
    assert log.notes
    assert listed() == first
    opened, kept_log = [], ImportLog()
    with monkeypatch.context() as patch:
        patch.setattr("trainer.data.tar_files.tarfile.open", lambda *tar, **how: opened.append(tar))
        assert listed(kept_log) == first
        assert kept_log == log
        assert opened == []
    (kept,) = (tmp_path / "workspace" / "cache").glob("*-pairs")
    lines, bounds = np.load(kept / "lines.npy"), np.load(kept / "bounds.npy")
    mended = {
        "lines.npy": (lines[:-9], lines.astype(np.uint16), lines[None]),
        "bounds.npy": (bounds[:-1], bounds[::-1], bounds[1:], bounds[:0]),
    }
    for name, arrays in mended.items():
        for array in arrays:
            np.save(kept / name, array)
            assert listed() == first, "another is listed again, and kept in its place"
            np.testing.assert_array_equal(np.load(kept / name), {"lines.npy": lines, "bounds.npy": bounds}[name])
    for old, new in ((b"[0,", b"[7,"), (b'"number 3"', b"[1,2,3,4] "), (b".png", b'.pn"'), (b"[0,", b"[-,")):
        np.save(kept / "lines.npy", np.frombuffer(lines.tobytes().replace(old, new), np.uint8))
        with pytest.raises(DataError, match=r"is damaged: .*\. Remove that folder: the tars are listed again\."):
            listed()
    tar_of(tars[0], pairs_of(0, 6))
    assert len(listed()[0]) == 10


def test_a_second_training_on_tars_reads_none_of_the_pairs_it_does_not_ask_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("trainer.data.kept_listing.WORTH_KEEPING", 2)
    members = pairs_of(0, 60) | {f"{n:04}.json": json.dumps({"n": n}).encode() for n in range(60)}
    tar_of(tmp_path / "a.tar", dict(sorted(members.items())))
    data = config.Shards(path=str(tmp_path / "a.tar"), heldout_share=0.1)
    how = {"image_size": SIZE, "workspace_folder": tmp_path / "workspace", "progress": silent, "prepared_first": 4}

    def told(splits: DataSplits) -> list[Any]:
        assert splits.train.images.listed
        return [
            [
                *([*texts] for texts in (part.captions, part.labels, part.paths)),
                {name: [*values] for name, values in part.metadata.items()},
                part.fingerprint,
            ]
            for part in (splits.train, *splits.heldout.values())
        ] + [[*splits.train.images.locations], splits.report, splits.suite, splits.training_pairs]

    with monkeypatch.context() as patch:
        patch.setattr("trainer.data.kept_listing.written_once", lambda *kept: None)
        expected = told(load(data, **how))
    assert told(load(data, **how)) == expected
    read: list[bytes] = []
    decoder = SimpleNamespace(decode=lambda line: read.append(bytes(line)) or LINE.decode(line))
    monkeypatch.setattr("trainer.data.kept_pairs.LINE", decoder)
    again = load(data, **how)
    held = len(again.heldout["heldout"])
    assert len(set(read)) == held < 20
    assert again.train.captions[3] == expected[0][0][3]
    assert again.train.captions[-3:] == expected[0][0][-3:]
    assert again.train.part(np.array([5, 2]), split="some").paths == [expected[0][2][row] for row in (5, 2)]
    assert len(set(read)) == held + 6
    assert told(again) == expected
    (kept,) = (tmp_path / "workspace" / "cache").glob("*-pairs")
    for fact in {*kept.glob("*.json")} - {kept / "head.json"}:
        for other in ({"another": "type"}, "../../../elsewhere", [-1], [60], json.loads(fact.read_text())):
            fact.write_text(json.dumps(other))
            assert told(load(data, **how)) == expected, "what is not what was written is computed again"


def test_texts_in_tars_are_read_in_the_encoding_of_their_tar_and_it_is_told(tmp_path: Path) -> None:
    western = {"0.png": png(0), "0.txt": b"plain", "1.png": png(1), "1.txt": "ein roter K\xe4fer".encode("cp1252")}
    western |= {"2.png": png(2), "2.json": json.dumps({"caption": "un caf\xe9"}, ensure_ascii=False).encode("cp1252")}
    western |= {"3.png": png(3), "3.txt": "schon UTF-8: \xfc".encode(), "4.png": png(4)}
    western |= {"4.txt": "mit Marke: \xf6".encode("utf-16")}
    russian = {
        "5.png": png(5),
        "5.txt": "\u043a\u0440\u0430\u0441\u043d\u044b\u0439 \u043a\u0440\u0443\u0433".encode("cp1251"),
    }
    japanese = {"6.png": png(6), "6.txt": "\u8d64\u3044\u9ce5".encode("shift_jis"), "7.png": png(7)}
    japanese |= {"7.txt": "\u9752\u3044\u9ce5\u3068\u82b1".encode("shift_jis")}
    for number, members in enumerate((western, russian, japanese)):
        tar_of(tmp_path / f"{number}.tar", members)
    tars = config.Shards(path=f"{tmp_path}/{{0..2}}.tar", heldout_share=0.3)
    splits = read(tars, tmp_path)
    assert shades(splits) == {
        "plain": 0,
        "ein roter K\xe4fer": 1,
        "un caf\xe9": 2,
        "schon UTF-8: \xfc": 3,
        "mit Marke: \xf6": 4,
        "\u043a\u0440\u0430\u0441\u043d\u044b\u0439 \u043a\u0440\u0443\u0433": 5,
        "\u8d64\u3044\u9ce5": 6,
        "\u9752\u3044\u9ce5\u3068\u82b1": 7,
    }
    assert splits.report.problems == []
    assert splits.report.notes[:3] == [
        "2 texts in tars, first that of 0.tar/1, are not UTF-8; they are read as Windows-1252. Set data.encoding if "
        "letters are wrong.",
        "1 text in tars, that of 1.tar/5, is not UTF-8; it is read as Windows-1251 (Cyrillic). Set data.encoding if "
        "letters are wrong.",
        "2 texts in tars, first that of 2.tar/6, are not UTF-8; they are read as Shift JIS (Japanese). Set "
        "data.encoding if letters are wrong.",
    ]


def test_texts_in_tars_are_read_in_the_encoding_that_was_chosen(tmp_path: Path) -> None:
    words = "\u043a\u0440\u0443\u0433"
    texts = [*(("txt", f"{words} {number}".encode("koi8-r")) for number in range(3)), ("cls", b"0")]
    members = {}
    for number, (ending, text) in enumerate(texts):
        members |= {f"{number}.png": png(number), f"{number}.{ending}": text}
    tar = tar_of(tmp_path / "a.tar", members)
    (tmp_path / "classnames.txt").write_bytes(words.encode("koi8-r"))
    splits = read(config.Shards(path=str(tar), encoding="koi8-r", heldout_share=0.3), tmp_path)
    assert shades(splits) == {f"{words} 0": 0, f"{words} 1": 1, f"{words} 2": 2, f"a photo of a {words}.": 3}
    told = r"first problem: a\.tar/0: Its \.txt is not UTF-8 text \(byte 0\)\. Set data\.encoding\."
    with pytest.raises(DataError, match=told):
        read(
            config.Shards(path=str(tar_of(tmp_path / "a.tar", {"0.png": png(0), "0.txt": b"\xe9"})), encoding="utf-8"),
            tmp_path,
        )


@pytest.mark.parametrize("size", [-1, -8_192])
def test_a_size_below_zero_in_a_tar_is_damage(size: int, tmp_path: Path) -> None:
    path = tar_of(tmp_path / "odd.tar", pairs_of(0, 3))
    content = bytearray(path.read_bytes())
    with tarfile.open(path) as archive:
        (member,) = (info for info in archive if info.name.endswith("1.txt"))
    header = slice(member.offset, member.offset + tarfile.BLOCKSIZE)
    block = bytearray(content[header])
    block[124:136] = b"%012o" % size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    content[header] = block
    path.write_bytes(content)
    splits, problems = shard_sources(config.Shards(path=str(path)), tmp_path, silent)
    assert len(splits) == 1
    assert any("has a size below zero. What comes before is used." in reason for _, reason in problems)


def test_a_tar_that_was_cut_short_gives_what_it_holds(tmp_path: Path) -> None:
    whole = tar_of(tmp_path / "0.tar", pairs_of(0, 10)).read_bytes()
    (tmp_path / "0.tar").write_bytes(whole[: len(whole) // 2])
    tar_of(tmp_path / "1.tar", pairs_of(20, 3))
    splits = read(config.Shards(path=f"{tmp_path}/{{0..2}}.tar"), tmp_path)
    assert 3 < splits.report.used < 13
    reasons = dict(splits.report.problems)
    assert "cut short" in reasons["0.tar"]
    assert reasons["2.tar"] == "There is no such tar."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("0.pyd", b"cposix\nsystem\n(S'touch CANARY'\ntR."),
        ("0.pkl", b"cposix\nsystem\n(S'touch CANARY'\ntR."),
        ("0.pth", b"cposix\nsystem\n(S'touch CANARY'\ntR."),
    ],
)
def test_nothing_in_a_tar_is_run(name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    splits = read(config.Shards(path=str(tar_of(tmp_path / "a.tar", {name: content, **pairs_of(0, 9)}))), tmp_path)
    assert splits.report.used == 9
    assert not (tmp_path / "CANARY").exists()


def test_links_out_of_a_tar_are_passed_over(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(99))
    tar = tar_of(tmp_path / "a.tar", pairs_of(0, 9))
    with tarfile.open(tar, "a") as archive:
        link = tarfile.TarInfo("0100.png")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        archive.addfile(link)
    assert 99 not in shades(read(config.Shards(path=str(tar)), tmp_path)).values()


@pytest.mark.parametrize("pattern", ["pipe:cat a.tar", "https://example.org/{0..3}.tar", "s3://bucket/a.tar"])
def test_addresses_and_commands_are_refused(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="address or a command"):
        read(config.Shards(path=pattern), tmp_path)


@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_are_listed_as_tarfile_lists_them_damage_included(format_: int) -> None:
    stream, names = io.BytesIO(), ["a.jpg", "dé/b.txt", f"{'long/' * 30}c.png", "d"]
    with tarfile.open(fileobj=stream, mode="w", format=format_) as archive:
        for size, name in enumerate(names, start=600):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.type = size, 1.5 * size, tarfile.DIRTYPE if name == "d" else tarfile.REGTYPE
            archive.addfile(info, io.BytesIO(bytes(size)))
    rng = np.random.default_rng(0)

    def listed(content: bytes, read: Callable[[io.BytesIO], Iterable[tarfile.TarInfo]]) -> list[Any]:
        found: list[Any] = []
        try:
            found.extend((each.name, each.offset_data, each.size, each.type) for each in read(io.BytesIO(content)))
        except tarfile.TarError as error:
            found.append(str(error))
        return found

    def as_tarfile(stream: io.BytesIO) -> tarfile.TarFile:
        return tarfile.open(fileobj=stream, mode="r:")

    assert [name for name, *_ in listed(stream.getvalue(), read_members)] == names
    for _ in range(200):
        content = bytearray(stream.getvalue())
        content[rng.integers(len(content))] ^= int(rng.integers(1, 256))
        assert listed(bytes(content), read_members) == listed(bytes(content), as_tarfile)
    for length in range(0, len(stream.getvalue()), 97):
        found = [each for each in listed(stream.getvalue()[:length], read_members) if not isinstance(each, str)]
        theirs = [each for each in listed(stream.getvalue()[:length], as_tarfile) if not isinstance(each, str)]
        whole = [each for each in found if each[1] + each[2] <= length]
        assert whole == theirs[: len(whole)], "the reader of samples leaves out what is cut"
        assert len(theirs) - len(whole) <= 1


def test_a_mistyped_range_is_refused_at_once() -> None:
    assert expand("a{08..11}b{x,y}.tar")[:3] == ["a08bx.tar", "a08by.tar", "a09bx.tar"]
    assert len(expand("{0..9}{0..9}.tar::z.tar")) == 101
    with pytest.raises(DataError, match="more than 100,000"):
        expand("x{0..99999999999}.tar")


# -- by name ---------------------------------------------------------------------------------------------------


class FakeCifar:
    classes = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

    def __init__(self, root: str, download: bool, train: bool) -> None:
        assert download
        self.data = np.stack([np.full((SIZE, SIZE, 3), shade, np.uint8) for shade in range(8)]) + 100 * train
        self.targets = [0, 1] * 4


def test_an_array_of_torchvision_becomes_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torchvision

    monkeypatch.setattr(torchvision.datasets, "CIFAR10", FakeCifar)
    splits = read(config.Named(name="CIFAR10"), tmp_path)
    assert [int(image[0, 0, 0]) for image in splits.train.images] == list(range(100, 108))
    # The published suite names the classes, and they are asked in the captions that are trained on.
    assert splits.heldout["heldout"].labels[:2] == ["airplane", "automobile"]
    assert splits.train.captions[1] == "a photo of a automobile."
    assert (len(splits.suite.classes), splits.suite.templates) == (10, ("a photo of a {}.",))


@pytest.mark.parametrize("codes", [("ae", "de", "fr"), ("AE", "DE", "FR", "XK")])
def test_countries_are_asked_by_their_names(tmp_path: Path, codes: tuple[str, ...]) -> None:
    """Country211 of torchvision itself: its folders are codes, and not all of them need to be there."""
    root = tmp_path / "data" / "torchvision"
    for split in ("train", "valid", "test"):
        for shade, code in enumerate(codes):
            (root / "country211" / split / code).mkdir(parents=True)
            for number in range(3):
                picture = Image.new("RGB", (SIZE, SIZE), (shade, number, len(split)))
                picture.save(root / "country211" / split / code / f"{number}.png")
    splits = read(config.Named(name="Country211", root=str(root)), tmp_path)
    names = ["United Arab Emirates", "Germany", "France", "Kosovo"][: len(codes)]
    assert [splits.train.labels[3 * place] for place in range(len(codes))] == names
    assert splits.train.captions[3] == "a photo of a Germany."
    assert len(splits.suite.classes) == 211
    asked = choose_pairs("country211", tmp_path, split=None, suite=None, learn=False, progress=lambda *_: None)
    assert asked.suite.templates[0] == "a photo i took in {}."
    # The same folder opened as a folder per class.
    folders = read(config.ClassFolder(path=str(root / "country211")), tmp_path)
    assert sorted({*folders.train.labels}) == sorted(names)


def test_classes_without_a_published_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torchvision

    monkeypatch.setattr(FakeCifar, "classes", ("c0", "c1"))
    monkeypatch.setattr(torchvision.datasets, "CIFAR10", FakeCifar)
    with pytest.raises(DataError, match=r"2 classes \(c0, c1 …\) and its names are of 10.*Put the whole"):
        read(config.Named(name="CIFAR10"), tmp_path)
    monkeypatch.setattr(named, "published_suite", lambda name: None)
    with pytest.raises(DataError, match="CIFAR10 has no names of classes here"):
        read(config.Named(name="CIFAR10"), tmp_path)


def test_files_of_torchvision_become_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torchvision

    root = classes(tmp_path / "root" / "files")

    class FakeFlowers:
        classes = ("rose", "tiger lily")

        def __init__(self, root: str, download: bool, split: str) -> None:
            self._image_files = sorted(Path(root).rglob("*.png"))[:: 1 if split == "train" else 2]
            self._labels = [n % 2 for n in range(len(self._image_files))]

    monkeypatch.setattr(torchvision.datasets, "Flowers102", FakeFlowers)
    splits = read(config.Named(name="Flowers102", root=str(root.parent)), tmp_path)
    assert (len(splits.train), len(splits.heldout["heldout"])) == (18, 9)
    assert splits.train.labels[:2] == ["rose", "tiger lily"]


def test_without_a_network_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torchvision.datasets.utils as downloads

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("<urlopen error [Errno -2] Name or service not known>")

    monkeypatch.setattr(downloads, "_get_redirect_url", unreachable)
    with pytest.raises(DataError, match=r"could not be downloaded: .*Check the network"):
        read(config.Named(name="CIFAR10", root=str(tmp_path / "root")), tmp_path)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """Return the URL of a local server of the test's folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *_: object) -> None:
            pass

    with served(Quiet) as address:
        yield address


def test_a_download_tells_how_far_it_is_and_can_be_cancelled(tmp_path: Path, site: str) -> None:
    import torchvision.datasets.utils as downloads

    from trainer.data.named import downloads_shown

    content = tmp_path / "big.bin"
    content.write_bytes(os.urandom(200_000))
    told: list[tuple[float, str]] = []
    with downloads_shown(lambda share, note: told.append((share, note)), "Things"):
        downloads._urlretrieve(f"{site}/big.bin", tmp_path / "copy.bin")
    assert (tmp_path / "copy.bin").read_bytes() == content.read_bytes()
    assert told[-1][0] == 1.0
    assert "Downloading Things" in told[1][1]

    def cancel(share: float, note: str) -> None:
        if "Downloading" in note:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), downloads_shown(cancel, "Things"):
        downloads._urlretrieve(f"{site}/big.bin", tmp_path / "copy.bin")
    assert downloads.tqdm.__name__ == "tqdm"


def test_a_data_set_of_the_hub(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = {
        "image": [{"bytes": png(n), "path": None} for n in range(8)] + [None],
        "text": [f"number {n}" for n in range(7)] + ["", "lost"],
    }
    features = datasets.Features({"image": datasets.Image(), "text": datasets.Value("string")})
    made = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict({"train": made}).save_to_disk(str(tmp_path / "saved"))
    data = recognize(tmp_path / "saved")
    for _ in range(2):  # the second time from what was kept
        splits = read(data, tmp_path)
        assert shades(splits) == {f"number {n}": n for n in range(7)}
        assert splits.report.problems == [("row 7", "It has no caption."), ("row 8", "It has no image.")]


def test_a_hub_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(DataError, match="--extra huggingface"):
        read(config.HubDataset(name="owner/name"), tmp_path)


# -- what is odd, what is it -----------------------------------------------------------------------------------


def test_odd_pictures_are_used_and_named(tmp_path: Path) -> None:
    root = tmp_path / "odd"
    root.mkdir()
    turned = Image.Exif()
    turned[0x0112] = 6
    plain = Image.new("RGB", (SIZE, SIZE), (9, 99, 199))
    plain.save(root / "plain.png")
    plain.save(root / "turned.jpg", exif=turned)
    plain.convert("CMYK").save(root / "print.jpg")
    plain.convert("RGBA").save(root / "clear.png")
    Image.fromarray(np.full((SIZE, SIZE), 30_000, np.uint16)).save(root / "deep.png")
    plain.save(root / "moving.gif", save_all=True, append_images=[Image.new("RGB", (SIZE, SIZE))])
    (root / "cut.png").write_bytes(png(5)[:60])
    for path in list(root.iterdir()):
        path.with_suffix(".txt").write_text(path.stem, encoding="utf-8")
    report = read(config.Folder(path=str(root), heldout_share=0.3), tmp_path).report
    remarks = dict(report.remarks)
    assert report.used == 6
    assert [name for name, _ in report.problems] == ["cut.png"]
    assert set(remarks) == {"turned.jpg", "print.jpg", "clear.png", "deep.png", "moving.gif"}
    assert "EXIF orientation" in remarks["turned.jpg"]
    assert "2 frames" in remarks["moving.gif"]


def test_what_people_point_at_is_recognized(tmp_path: Path) -> None:
    assert isinstance(recognize(classes(tmp_path / "animals")), config.ClassFolder)
    captioned = tmp_path / "captioned" / "deep"
    captioned.mkdir(parents=True)
    (captioned / "a.png").write_bytes(png(1))
    (captioned / "a.txt").write_text("a", encoding="utf-8")
    assert isinstance(recognize(tmp_path / "captioned"), config.Folder)
    assert isinstance(recognize(tar_of(tmp_path / "tars" / "0.tar", pairs_of(0, 2))), config.Shards)
    assert isinstance(recognize(tmp_path / "tars"), config.Shards)
    (tmp_path / "a.csv").write_text("Image;Caption\nx.png;hello\n", encoding="utf-8")
    assert recognize(tmp_path / "a.csv") == config.Table(
        path=str(tmp_path / "a.csv"), image_column="Image", caption_column="Caption"
    )
    with pytest.raises(config.ConfigError, match="does not exist"):
        recognize(tmp_path / "nowhere")
    (tmp_path / "a.docx").write_bytes(b"PK")
    with pytest.raises(config.ConfigError, match="not a recognized data set"):
        recognize(tmp_path / "a.docx")


def test_names_and_absolute_paths() -> None:
    assert config.data_name(config.Shards(path="/x/shards/{000..100}.tar")) == "shards"
    assert config.data_name(config.HubDataset(name="owner/flowers")) == "flowers"
    assert config.data_name(config.Table(path="/x/pairs.tsv")) == "x", "many files have that name"
    joined = config.absolute(config.Shards(path="a/{0..1}.tar::b.tar")).path
    assert joined == f"{Path('a/{0..1}.tar').absolute()}::{Path('b.tar').absolute()}"
