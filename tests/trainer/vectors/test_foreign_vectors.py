"""Files of vectors of other programs: what stands next to the vectors, tables of numbers, parts, and damaged ones."""

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save_file

from tests.nightly import nightly_except
from trainer.errors import UserError
from trainer.store import Items
from trainer.untrusted.bounded import word_vectors
from trainer.vectors.item_table import check_items, read_items
from trainer.vectors.matrices import FoundVectors, find
from trainer.vectors.open_run import VectorError

ROOT = Path(__file__).resolve().parents[3]
N, D = 12, 5
VECTORS = np.random.default_rng(3).normal(size=(N, D)).astype(np.float32)
NAMES = [f"sub/{i}.jpg" for i in range(N)]


def opened(path: Path, items: Path | None = None) -> tuple[np.ndarray, Items, FoundVectors]:
    """Return all vectors of images in a file, what is known of their rows, and what was found."""
    found = find(path)
    assert found.image is not None
    files = found.items if items is None else (items,)
    known, _ = read_items(files, np.arange(found.image.rows), found.image.rows, arrays=found.columns, split="x")
    return found.image.take(np.arange(found.image.rows)), known, found


def test_arrays_next_to_the_vectors_tell_of_the_rows(tmp_path: Path) -> None:
    labels = np.arange(N) % 3
    np.savez(tmp_path / "a.npz", embeddings=VECTORS, labels=labels, paths=np.array(NAMES), other=np.arange(N + 1))
    save_file({"embeddings": VECTORS, "labels": labels}, tmp_path / "b.safetensors")
    torch.save(
        {"embeddings": torch.from_numpy(VECTORS), "filenames": NAMES, "labels": torch.from_numpy(labels)},
        tmp_path / "c.pt",
    )
    for name in ("a.npz", "b.safetensors", "c.pt"):
        vectors, items, found = opened(tmp_path / name)
        np.testing.assert_array_equal(vectors, VECTORS)
        assert list(items.label) == [str(label) for label in labels], name
        assert "other" not in found.columns
        if not name.startswith("b"):
            assert list(items.content) == [f"path:{path}" for path in NAMES]


def test_arrays_of_objects_are_not_opened_and_said(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", embeddings=VECTORS, filenames=np.array(NAMES, dtype=object))
    vectors, _, found = opened(tmp_path / "a.npz")
    np.testing.assert_array_equal(vectors, VECTORS)
    assert found.note == "Not opened, as arrays of objects can run code: filenames."


def write_cells(file: Path, header: list[str], rows: list[list[Any]], separator: str) -> Path:
    file.write_text("".join(separator.join(map(str, row)) + "\n" for row in ([header] if header else []) + rows))
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "first"),
    nightly_except([["embedding_", 0], ["emb", 1], ["dim-", 0], ["x.", 1], ["", 1]], ["emb", 1]),
)
def test_numbered_columns_are_vectors(tmp_path: Path, begin: str, first: int) -> None:
    order = list(range(D))
    random.Random(0).shuffle(order)
    names = [f"{begin}{i + first}" for i in order]
    rows = [[NAMES[i], *VECTORS[i, order].tolist(), i % 2] for i in range(N)]
    file = write_cells(tmp_path / "e.csv", ["filenames", *names, "labels"], rows, ",")
    columns = {name: VECTORS[:, i] for name, i in zip(names, order)}
    pq.write_table(
        pa.table({"filenames": NAMES, **columns, "labels": [i % 2 for i in range(N)]}), tmp_path / "e.parquet"
    )
    for one in (file, tmp_path / "e.parquet"):
        vectors, items, _ = opened(one)
        np.testing.assert_allclose(vectors, VECTORS, rtol=1e-6)
        assert list(items.label) == [str(i % 2) for i in range(N)]
        assert items.metadata == {}


@pytest.mark.slow
def test_columns_that_are_counted_otherwise_are_no_vectors(tmp_path: Path) -> None:
    for header in (
        ["a_0", "a_1", "a_3", "a_4"],
        ["a_2", "a_3", "a_4", "a_5"],
        ["a", "b", "c", "d"],
        ["a_0", "a_1", "b", "c"],
    ):
        file = write_cells(tmp_path / "e.csv", header, VECTORS[:, :4].tolist(), ",")
        with pytest.raises(VectorError, match="holds no vectors"):
            find(file)


@pytest.mark.slow
def test_tensors_of_the_projector_are_read_as_tensorboard_reads_them(tmp_path: Path) -> None:
    from tensorboard.plugins.projector import projector_plugin

    theirs = vars(projector_plugin)["_read_tensor_tsv_file"]

    file = write_cells(tmp_path / "tensors.tsv", [], VECTORS.tolist(), "\t")
    vectors, _, found = opened(file)
    np.testing.assert_array_equal(vectors, theirs(str(file)))
    assert found.items == ()
    labeled = write_cells(tmp_path / "l.tsv", [], [[f"w {i}", *VECTORS[i]] for i in range(N)], "\t")
    vectors, items, _ = opened(labeled)
    np.testing.assert_allclose(vectors, VECTORS, rtol=1e-6)
    assert list(items.label) == [f"w {i}" for i in range(N)]
    pandas = write_cells(tmp_path / "p.csv", list(map(str, range(D))), VECTORS.tolist(), ",")
    np.testing.assert_allclose(opened(pandas)[0], VECTORS, rtol=1e-6)


WORDS = ["king", '"quote', "new york", '5" disk', *(f"w{i}" for i in range(N - 5)), 'end"']
"""One a row; a reader of quoted cells takes some of them for one."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("".join(f"{word}\n" for word in WORDS), WORDS),
        ("\n".join(WORDS), WORDS),
        ("label\n" + "".join(f"{word}\n" for word in WORDS), WORDS),
        ("word\tlabel\n" + "".join(f"{word}\t{i}\n" for i, word in enumerate(WORDS)), [str(i) for i in range(N)]),
        ("label\tb\n" + "".join(f'"a ""{i}"" b\nc"\t{i}\n' for i in range(N)), [f'a "{i}" b\nc' for i in range(N)]),
    ],
    ids=["one column", "without a last line end", "one with a header", "two columns", "quoted cells"],
)
def test_a_table_of_the_projector_has_the_lines_that_fit(tmp_path: Path, text: str, labels: list[str]) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "metadata.tsv").write_text(text, encoding="utf-8")
    _, items, _ = opened(tmp_path / "v.npy", tmp_path / "metadata.tsv")
    assert list(items.label) == labels


def clip_retrieval(folder: Path, image: list[int], text: list[int], metadata: list[int]) -> Path:
    """Write parts of so many rows."""
    for name, sizes in {"img_emb": image, "text_emb": text, "metadata": metadata}.items():
        (folder / name).mkdir(parents=True)
        for part, rows in enumerate(sizes):
            if name == "metadata":
                pq.write_table(pa.table({"caption": ["x"] * rows}), folder / name / f"{name}_{part}.parquet")
            else:
                array = VECTORS[:rows] if rows else np.zeros(0, np.float32)
                np.save(folder / name / f"{name}_{part}.npy", array)
    return folder


@pytest.mark.slow
def test_parts_without_vectors_are_passed_over_and_counted(tmp_path: Path) -> None:
    folder = clip_retrieval(tmp_path / "e", [0, 4, 0, 5], [0, 4, 0, 5], [0, 4, 0, 5])
    vectors, items, found = opened(folder)
    np.testing.assert_array_equal(vectors, np.concatenate([VECTORS[:4], VECTORS[:5]]))
    assert len(items.caption) == 9
    assert found.note == "2 of 4 parts of img_emb hold no vectors. 2 of 4 parts of text_emb hold no vectors."


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (([4, 5], [4, 3], [4, 5]), "Part 1 has 5 rows in .*img_emb and has 3 rows in text_emb"),
        (([4, 5], [4], [4, 5]), "Part 1 has 5 rows in .*img_emb and is missing in text_emb"),
        (([4, 5], [4, 5], [4]), "Part 1 has 5 rows in .*img_emb and is missing in metadata"),
    ],
)
def test_a_part_that_is_short_or_missing_is_named(tmp_path: Path, sizes: tuple[list[int], ...], words: str) -> None:
    with pytest.raises(VectorError, match=words):
        find(clip_retrieval(tmp_path / "e", *sizes))


@pytest.mark.slow
def test_a_part_of_the_metadata_with_other_lines_is_named(tmp_path: Path) -> None:
    found = find(clip_retrieval(tmp_path / "e", [5, 5, 5], [5, 5, 5], [5, 4, 5]))
    words = r"14 lines \(most of the 3 tables have 5, metadata_1\.parquet 4\) and the vectors 15 rows"
    with pytest.raises(VectorError, match=words):
        check_items(found.items, 15)


def _pt(file: Path) -> None:
    torch.save({"image": torch.from_numpy(VECTORS), "text": torch.from_numpy(VECTORS)}, file)


def _npz(file: Path) -> None:
    np.savez(file, image=VECTORS, text=VECTORS)


@pytest.mark.parametrize("write", [_pt, _npz])
def test_a_directory_with_any_byte_changed_is_read_or_refused_in_words(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    """Each byte of the end of the archive, where its directory is."""
    file = tmp_path / f"v.{write.__name__[1:]}"
    write(file)
    whole, refused = file.read_bytes(), 0
    words: list[str] = []
    for place in range(len(whole) - 120, len(whole)):
        for value in (0x80, 0xFF, 0):
            file.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                found = find(file)
                assert found.image is not None
                found.image.take(np.arange(2))
            except UserError as error:
                refused += 1
                words.append(str(error))
    assert refused > 60
    assert [one for one in words if not one.endswith(".")] == []


@pytest.mark.slow
def test_offsets_that_lead_out_of_the_file_are_refused(tmp_path: Path) -> None:
    table = pa.table({"image": VECTORS.tolist(), "caption": [f"word {i}" for i in range(N)]})
    offsets = np.frombuffer(table["caption"].chunk(0).buffers()[1], np.int32)[: N + 1].tobytes()
    for name, new in (("f.arrow", pa.ipc.new_file), ("s.arrow", pa.ipc.new_stream)):
        with pa.OSFile(str(tmp_path / name), "wb") as file, new(file, table.schema) as writer:
            writer.write_table(table)
        content = bytearray((tmp_path / name).read_bytes())
        content[content.index(offsets) + 24 + 1] = 64
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match="cannot be read"):
            opened(tmp_path / name)


def _led(rows: np.ndarray) -> bytes:
    """Return rows as TEXMEX describes them: four bytes of width before each."""
    return b"".join(len(row).to_bytes(4, "little", signed=True) + row.tobytes() for row in rows)


def _counted(rows: np.ndarray) -> bytes:
    """Return rows as big-ann-benchmarks describes them: their number and width before all."""
    return len(rows).to_bytes(4, "little") + rows.shape[1].to_bytes(4, "little") + rows.tobytes()


WHOLE_NUMBERS = np.random.default_rng(4).integers(-100, 100, (N, D))


@pytest.mark.parametrize(
    ("ending", "kind", "write"),
    [
        ("fvecs", "<f4", _led),
        ("ivecs", "<i4", _led),
        ("bvecs", "u1", _led),
        ("fbin", "<f4", _counted),
        ("hbin", "<f2", _counted),
        ("fp16bin", "<f2", _counted),
        ("f16bin", "<f2", _counted),
        ("u8bin", "u1", _counted),
        ("i8bin", "i1", _counted),
        ("ibin", "<i4", _counted),
    ],
)
def test_files_of_benchmarks_of_search(
    tmp_path: Path, ending: str, kind: str, write: Callable[[np.ndarray], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.vectors.matrices.AT_ONCE", 5)
    rows = (VECTORS if "f" in kind else WHOLE_NUMBERS).astype(kind)
    file = tmp_path / f"v.{ending}"
    file.write_bytes(write(rows))
    vectors, _, found = opened(file)
    np.testing.assert_array_equal(vectors, rows)
    assert found.image is not None
    assert found.image.half == (kind == "<f2")
    np.testing.assert_array_equal(found.image.take(np.array([1, 2, 11])), rows[[1, 2, 11]])
    assert [len(block) for block in found.image.blocks(np.arange(N), 7)] == [7, 5]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("v.fvecs", b"", "has 0 bytes, which hold no row"),
        ("v.fbin", b"\1\0\0\0", "has 4 bytes, which hold no row"),
        ("v.fvecs", bytes(24), "claims rows of 0 numbers"),
        ("v.bvecs", b"\xff" * 24, "claims rows of -1 numbers"),
        ("v.ivecs", b"\xff\xff\xff\x7f" * 6, "claims rows of 2,147,483,647 numbers"),
        ("v.fvecs", _led(VECTORS)[:-1], "has 287 bytes: 11 rows of 5 numbers, and 23 bytes more. It was cut"),
        ("v.bvecs", _led(WHOLE_NUMBERS.astype("u1")) + b"x", "12 rows of 5 numbers, and 1 bytes more. It was cut"),
        (
            "v.fvecs",
            _led(VECTORS[:3]) + _led(VECTORS[:6, :2]),
            "Row 3 of v.fvecs claims 2 numbers, and the first row 5",
        ),
        ("v.fbin", b"\xff" * 8 + bytes(20), "claims rows of 4,294,967,295 numbers"),
        ("v.fbin", b"\xff\xff\xff\xff\0\1\0\0" + bytes(20), "claims 4,294,967,295 rows of 256 numbers"),
        ("v.fbin", bytes(8) + bytes(20), "claims rows of 0 numbers"),
        ("v.i8bin", _counted(WHOLE_NUMBERS.astype("i1"))[:-1], "claims 12 rows of 5 numbers, which are 68. It was cut"),
        ("v.hbin", _counted(VECTORS.astype("<f2")) + b"x", "which are 128. Write it again"),
        ("v.fbin", _counted(VECTORS[:, :1]), "holds no vectors but v .12 x 1, float32."),
    ],
)
def test_what_a_file_of_vectors_claims_is_compared_with_what_it_has(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words):
        opened(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("v.txt", b"", "holds no words with 2 to"),
        ("v.txt", b"king\n", "holds no words with 2 to"),
        ("v.vec", b"9 2\na 1 2\nb 3 4\n", "claims 9 words of 2 numbers and has 2 of 2"),
        ("v.vec", b"2 300\na 1 2\nb 3 4\n", "claims 2 words of 300 numbers and has 2 of 2"),
        ("v.txt", b"a 1 2\nb 3 4\nc 5", "Line 3 of v.txt has 1 numbers, and the first ones 2. It was cut"),
        ("v.txt", b"It is text\nand no set\n", "holds a number that is none after line 1"),
        ("v.txt", b"9" * (1 << 20) + b" 1" * 70_000, "holds no words with 2 to"),
    ],
)
def test_what_a_file_of_words_claims_is_compared_with_what_it_has(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words):
        list(word_vectors.opened(tmp_path / name, "v", None)[1])


TOKENS = ["the", ". . .", "at name@domain.com", "2003", "1 2", '"', "NA", "\u00a0", "naïve", "x\x0by", *"no"]
"""One a row, as those of GloVe are: with spaces, quotes, numbers and signs that other readers take for spaces."""


def word2vec(words: list[str], end: bytes = b"") -> bytes:
    """Return words with their vectors as word2vec writes them; its own program ends a row by a line break."""
    rows = zip(words, VECTORS, strict=True)
    return f"{N} {D}\n".encode() + b"".join(word.encode() + b" " + row.tobytes() + end for word, row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_binary_form_of_word2vec(tmp_path: Path, end: bytes) -> None:
    tokens = [token.replace(" ", "_") for token in TOKENS]
    (tmp_path / "v.bin").write_bytes(word2vec(tokens, end))
    vectors, items, _ = opened(tmp_path / "v.bin")
    np.testing.assert_array_equal(vectors, VECTORS)
    assert list(items.label) == tokens


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not begin with a number of words"),
        (b"\xba\x16O/ 5\n", "Of fastText, choose the .vec"),
        (b"9999999999 300\n" + bytes(99), "claims 9,999,999,999 words of 300 numbers"),
        (b"1 99999999\n" + bytes(99), "claims 1 words of 99,999,999 numbers"),
        (word2vec(["a"] * N)[:-3], "claims 12 words and has 11. It was cut"),
        (word2vec(["a"] * N) + b"b", "has more behind its 12 words"),
        (b"2 2\n" + b"x" * 20_000, "claims 2 words and has 0"),
    ],
    ids=["empty", "fastText", "many words", "wide", "cut", "long", "no space"],
)
def test_what_a_file_of_word2vec_claims_is_compared_with_what_it_has(tmp_path: Path, content: bytes, words: str):
    (tmp_path / "v.bin").write_bytes(content)
    with pytest.raises(UserError, match=words):
        list(word_vectors.opened(tmp_path / "v.bin", "v", None)[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["glove.txt.gz", "wiki.en.VEC.GZ"])
def test_words_that_are_compressed(tmp_path: Path, name: str) -> None:
    lines = [" ".join([f"w{i}", *map(str, row.tolist())]) for i, row in enumerate(VECTORS)]
    (tmp_path / name).write_bytes(gzip.compress("\n".join([f"{N} {D}", *lines]).encode()))
    vectors, items, _ = opened(tmp_path / name)
    np.testing.assert_array_equal(vectors, VECTORS)
    assert list(items.label) == [f"w{i}" for i in range(N)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b"a 1 2\n" * 2_000_000), "unfolds to more than 100 times its size"),
        (gzip.compress(b"a 1 2\n")[:-9], "ended before"),
        (b"a 1 2\n", "Not a gzipped file"),
    ],
    ids=["bomb", "cut", "plain"],
)
@pytest.mark.slow
def test_what_is_compressed_is_not_trusted(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "v.txt.gz").write_bytes(content)
    with pytest.raises((UserError, EOFError, OSError), match=words):
        list(word_vectors.opened(tmp_path / "v.txt.gz", "v", None)[1])
    with pytest.raises(UserError, match=words):
        find(tmp_path / "v.txt.gz")


@pytest.mark.slow
@pytest.mark.parametrize(("head", "end"), [("", "\n"), (f"{N} {D}\n", " \r\n")])
def test_words_with_their_vectors_are_items_with_a_label(tmp_path: Path, head: str, end: str) -> None:
    lines = [" ".join([token, *map(str, row.tolist())]) for token, row in zip(TOKENS, VECTORS, strict=True)]
    (tmp_path / "glove.txt").write_bytes((head + "".join(line + end for line in lines)).encode())
    vectors, items, _ = opened(tmp_path / "glove.txt")
    np.testing.assert_array_equal(vectors, [[np.float32(number) for number in line.split(" ")[-D:]] for line in lines])
    assert list(items.label) == TOKENS
    found = find(tmp_path / "glove.txt")
    assert found.image is not None
    assert [len(block) for block in found.image.blocks(np.arange(N), 7)] == [7, 5]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lists.csv", "arrays.csv", "lists.jsonl"])
def test_lists_in_cells_and_in_lines_of_json_are_vectors(tmp_path: Path, name: str) -> None:
    import pandas as pd

    is_array = name.startswith("arrays")
    table = pd.DataFrame({"path": NAMES, "embedding": list(VECTORS) if is_array else VECTORS.tolist()})
    if name.endswith("l"):
        table.to_json(tmp_path / name, orient="records", lines=True, double_precision=15)
    else:
        table.to_csv(tmp_path / name, index=False)
    vectors, items, _ = opened(tmp_path / name)
    np.testing.assert_allclose(vectors, VECTORS, rtol=1e-5, atol=1e-6)
    assert list(items.content) == [f"path:{path}" for path in NAMES]


def test_a_folder_of_one_file_of_both_sides_has_what_the_file_has(tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", image=VECTORS, text=-VECTORS, label=np.arange(N))
    for path in (tmp_path, tmp_path / "both.npz"):
        found = find(path)
        assert found.image is not None
        assert found.text is not None
        np.testing.assert_array_equal(found.text.take(np.arange(N)), -VECTORS)
        assert list(found.columns["label"]) == [*range(N)]


@pytest.mark.slow
def test_a_matrix_saved_as_text_with_commas(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "image.txt", VECTORS, delimiter=",")
    np.testing.assert_allclose(opened(tmp_path / "image.txt")[0], VECTORS, rtol=1e-6)


@pytest.mark.slow
def test_a_matrix_that_numpy_saved_as_text_has_no_words(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "image.txt", VECTORS)
    vectors, known, _ = opened(tmp_path / "image.txt")
    np.testing.assert_array_equal(vectors, VECTORS)
    assert not any(known.label)
    with (tmp_path / "image.txt").open("a") as file:
        file.write("cat 1 2 3 4 5\n")
    with pytest.raises(UserError, match="has 6 numbers, and the first ones 5"):
        opened(tmp_path / "image.txt")


def test_words_that_are_no_utf_8_and_numbers_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "w.vec").write_bytes(b"a\xff 1 2\n\nb nan 3\nc\t4  5\n")
    schema, batches, rows = word_vectors.opened(tmp_path / "w.vec", "v", None)
    (batch,) = batches
    assert batch.schema == schema
    assert batch["label"].to_pylist() == ["a\ufffd", "b", "c"]
    np.testing.assert_array_equal(np.stack([batch["v0"], batch["v1"]], axis=1), [[1, 2], [np.nan, 3], [4, 5]])
    assert rows == 3


@pytest.mark.slow
def test_a_file_that_shrinks_once_it_was_looked_into_is_told(tmp_path: Path) -> None:
    """In a process of its own: a map of such a file would end it by SIGBUS."""
    rows = np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32)
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "b.npy", np.asfortranarray(rows))
    save_file({"embeddings": rows}, tmp_path / "c.safetensors")
    np.concatenate([np.full((len(rows), 1), 8, "<i4").view("<f4"), rows], 1).tofile(tmp_path / "d.fvecs")
    code = """
import os, sys
import numpy as np
from pathlib import Path
from trainer.errors import UserError
from trainer.vectors.matrices import find
for file in sorted(Path(sys.argv[1]).iterdir()):
    matrix = find(file).image
    some = matrix.take(np.array([0, 2, 9, 19_999]))
    print(*some[:, 0].tolist())
    os.truncate(file, file.stat().st_size // 2)
    try:
        matrix.take(np.arange(matrix.rows))
    except UserError as error:
        print(error)
"""
    command = [sys.executable, "-P", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    numbers = " ".join(map(str, rows[[0, 2, 9, 19_999], 0].tolist()))
    assert said[::2] == [numbers] * 4
    assert all("has become shorter" in line for line in said[1::2])
    assert len(said) == 8


def test_arrays_and_tables_beside_the_vectors_of_a_folder_are_read_or_told(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    objects = np.array([{"a": 1}] * 7, dtype=object)
    arrays = {
        "images": numbers,
        "texts": -numbers,
        "labels": np.arange(7) % 3,
        "filenames": np.array([f"{n}.jpg" for n in range(7)]),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "more.npy", objects, allow_pickle=True)
    (tmp_path / "captions.csv").write_text("caption\n" + "a dog\n" * 7)
    vectors = find(tmp_path)
    assert vectors.image is not None
    assert vectors.text is not None
    assert np.array_equal(vectors.image.take(np.arange(7)), numbers)
    assert np.array_equal(vectors.text.take(np.arange(7)), -numbers)
    assert {name: list(column) for name, column in vectors.columns.items()} == {
        name: arrays[name].tolist() for name in ("labels", "filenames")
    }
    assert "Left out: more.npy holds values of type object" in vectors.note
    assert "Next to the vectors lie captions.csv: --items FILE tells what the rows are." in vectors.note
