"""Files of known kinds that are not read are named with the next step, wherever they are met."""

from pathlib import Path

import pytest

from tests.nightly import few_plain
from tests.trainer.data.test_stated_splits import listed
from tests.trainer.test_format_detection import pictures, png, write
from trainer.config import ConfigError
from trainer.data import DataError
from trainer.format_detection import propose
from trainer.vectors.matrices import VectorError, find

NAMES = {
    "captions.xlsx": "Save it as CSV.",
    "captions.txt.gz": "Unpack it first.",
    "metadata.jsonl.zst": "Unpack it first.",
    "setid.mat": "by scipy.io.loadmat.",
    "captions.pkl": "because it can run code.",
}
OTHERS = {
    "train-00000-of-00010.tfrecord": "tars in the WebDataset layout",
    "train.tfrecord-00000-of-00010": "tars in the WebDataset layout",
    "data.mdb": "tars in the WebDataset layout",
    "pokemon-train.arrow": "datasets.Dataset.from_file(FILE).to_parquet(NAME).",
    "images.zip": "Unpack it first.",
    "set.h5": "by h5py.",
}


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
@pytest.mark.parametrize("below", ["", "inner/"])
def test_what_is_not_read_has_its_next_step(tmp_path: Path, name: str, below: str) -> None:
    file = write(tmp_path / "set" / below / name, "x")
    step = {**NAMES, **OTHERS}[name]
    with pytest.raises(ConfigError) as alone:
        propose(file)
    with pytest.raises(ConfigError) as inside:
        propose(tmp_path / "set")
    for error in (alone, inside):
        assert f"{name}" in str(error.value)
        assert step in str(error.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", ["images/", ""])
def test_what_may_hold_the_captions_of_pictures_is_a_question(tmp_path: Path, name: str, folder: str) -> None:
    pictures(tmp_path, [f"{folder}{number}.jpg" for number in range(4)])
    write(tmp_path / name, "x")
    assert f"{name!r} is not read. " in propose(tmp_path).question
    assert NAMES[name] in propose(tmp_path).question


def test_an_archive_beside_what_was_unpacked_is_no_question(tmp_path: Path) -> None:
    pictures(tmp_path, [f"{kind}/{number}.jpg" for kind in ("cat", "dog") for number in range(2)])
    write(tmp_path / "cat.csv.zst", "x")
    write(tmp_path / "set.zip", "x")
    assert not propose(tmp_path).question


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("x.faiss", "faiss.read_index(FILE)"),
        ("x.ann", "by the library that made it"),
        ("x.mat", "by scipy.io.loadmat"),
        ("x.pkl", "because it can run code"),
        ("x.csv.zst", "Unpack it first."),
        ("x.json", "as JSON lines (.jsonl)"),
    ],
)
def test_vectors_of_other_forms_have_their_next_step(tmp_path: Path, name: str, step: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(VectorError) as refused:
        find(tmp_path / name)
    assert step in str(refused.value)


@few_plain(
    3, "layout", ["csv", pytest.param("parquet", marks=pytest.mark.slow), "folder", "jsonl", "tsv without names"]
)
def test_pictures_as_text_have_their_next_step(tmp_path: Path, layout: str) -> None:
    import base64

    import pandas as pd

    table = pd.DataFrame({"image": [base64.b64encode(png(n)).decode() for n in range(3)], "text": ["a dog here"] * 3})
    file = tmp_path / f"train_imgs.{'tsv' if ' ' in layout or layout == 'folder' else layout}"
    written = {
        "csv": lambda: table.to_csv(file, index=False),
        "jsonl": lambda: table.to_json(file, orient="records", lines=True),
        "parquet": lambda: table.to_parquet(file),
    }
    written.get(layout, lambda: table[["text", "image"]].to_csv(file, sep="\t", index=False, header=False))()
    with pytest.raises((ConfigError, DataError), match=r"as text \(base64\), which is not read"):
        listed(propose(tmp_path if layout == "folder" else file).data, tmp_path)
