"""Texts that are compressed or in UTF-16 are UTF-8 once they are opened, within limits."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from trainer.untrusted import texts
from trainer.untrusted.texts import ending_of, is_unmarked, open_text

TEXT = "image,caption\n1.jpg,ein größerer Hund 犬\n"
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": bytes}


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_text_is_read_as_utf_8(tmp_path: Path, ending: str, encoding: str) -> None:
    file = tmp_path / f"a.CSV{ending}"
    file.write_bytes(PACKERS[ending](TEXT.encode(encoding)))
    with open_text(file) as opened:
        assert opened.read().decode("utf-8").removeprefix("\ufeff") == TEXT
    assert ending_of(file) == ".csv"
    assert is_unmarked(file) == encoding.startswith("utf-16-")


@pytest.mark.parametrize(
    "begin", [b"", b"a", b"a\0b\0c\0", b"\0\0\0\0\0\0\0\0", b"a\0b\0c\0\0\0", "犬が走る".encode("utf-16-le")]
)
def test_few_or_other_bytes_are_not_taken_for_utf_16(begin: bytes) -> None:
    assert texts.wide_encoding(begin) == ""


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_what_is_compressed_is_not_trusted(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / f"a.csv{ending}"
    file.write_bytes(PACKERS[ending](b"0" * 3_000_000)[:-9])
    with pytest.raises(OSError, match="compressed, and damaged or cut off"), open_text(file) as opened:
        opened.read()
    monkeypatch.setattr(texts, "_MOST_UNPACKED", 1 << 20)
    file.write_bytes(PACKERS[ending](b"0" * 3_000_000))
    with pytest.raises(OSError, match="unfolds to more than"), open_text(file) as opened:
        opened.read()
