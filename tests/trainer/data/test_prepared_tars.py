"""Prepared pictures as tars: the same pixels, captions, classes and splits as the pictures themselves."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainer import config
from trainer.data import DataError, load
from trainer.data.prepared_tars import write_prepared_tars

pytestmark = pytest.mark.slow


def silent(_share: float, _note: str) -> None:
    pass


@pytest.mark.parametrize("classes", [False, True])
def test_what_is_read_there_is_what_is_read_here(tmp_path: Path, classes: bool, monkeypatch) -> None:
    monkeypatch.setattr("trainer.data.prepared_tars.PAIRS_A_TAR", 8)
    rng, root = np.random.default_rng(0), tmp_path / "birds"
    for number in range(30):
        folder = root / ("a robin", "a jay")[number % 2] if classes else root
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (40 + number, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.jpg")
        if not classes:
            (folder / f"{number:02d}.txt").write_text(f"bird  {number}, ähnlich")
    data = config.ClassFolder(path=str(root)) if classes else config.Folder(path=str(root))
    for _ in range(2):
        tars = write_prepared_tars(data, image_size=32, workspace=tmp_path / "here", progress=silent)
    one = load(data, image_size=32, workspace_folder=tmp_path / "here", progress=silent)
    other = load(tars, image_size=32, workspace_folder=tmp_path / "there", progress=silent)
    assert other.train.name == "birds"
    assert [*other.heldout] == [*one.heldout] == ["heldout"]
    for here, there in ((one.train, other.train), (one.heldout["heldout"], other.heldout["heldout"])):
        np.testing.assert_array_equal(np.asarray(here.images), np.asarray(there.images))
        assert (here.captions, here.labels) == (there.captions, there.labels)
        assert here.fingerprint == there.fingerprint
    assert (one.suite is None) == (other.suite is None) == (not classes)
    assert len(list(Path(tars.path).glob("train/*.tar"))) == -(-len(one.train) // 8)


def test_what_is_drawn_is_not_sent(tmp_path: Path) -> None:
    data = config.Scenes(train_pairs=16, heldout_pairs=8)
    with pytest.raises(DataError, match="made where the run trains"):
        write_prepared_tars(data, image_size=32, workspace=tmp_path, progress=silent)
