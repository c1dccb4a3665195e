"""Texts in UTF-16 without a mark in tars: read, and called a guess; and lines that end with two signs."""

import io
import tarfile
from pathlib import Path

from PIL import Image

from trainer import config
from trainer.data.csv_lines import numbered
from trainer.data.pairs import ImportLog
from trainer.data.tar_files import shard_sources
from trainer.untrusted.texts import open_text


def test_texts_without_a_mark_are_read_and_called_a_guess(tmp_path: Path) -> None:
    picture, captions = io.BytesIO(), ["ein r\xf6ter Stern", "a blue moon"]
    Image.new("RGB", (4, 4)).save(picture, "PNG")
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for row, encoding in enumerate(("utf-16-le", "utf-8")):
            for ending, content in (("png", picture.getvalue()), ("txt", captions[row].encode(encoding))):
                member = tarfile.TarInfo(f"{row}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    log = ImportLog()
    sources, problems = shard_sources(config.Shards(path=str(tmp_path)), tmp_path, lambda *_: None, log)
    assert ([source.caption for source in sources["train"]], problems) == (captions, [])
    assert [note for note in log.notes if "UTF-16-LE" in note and "0.tar/0" in note], log.notes


def test_a_line_that_ends_with_both_signs_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"first\r" * 20_000 + b"second\r\nthird\r\n")
    with open_text(file) as opened:
        assert [raw for _, raw in numbered(opened)][-2:] == [b"second", b"third"]
