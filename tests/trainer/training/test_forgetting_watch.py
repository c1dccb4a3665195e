"""The alert on what a fine-tuning forgets: raised by a fall beyond its interval, taken back, kept over a resume."""

from pathlib import Path

import numpy as np
import pytest

from trainer.data import Pairs
from trainer.data.tokenizer import train_tokenizer
from trainer.evaluation import Embedded, HeldOut
from trainer.store import snapshot_name, write_snapshot
from trainer.training.forgetting_watch import ForgettingWatch

N = 40


@pytest.fixture(scope="module")
def heldout() -> HeldOut:
    rng = np.random.default_rng(0)
    captions = [f"picture number {number}" for number in range(N)]
    paths = [f"{number}.png" for number in range(N)]
    pairs = Pairs("old", "test", rng.integers(0, 255, (N, 8, 8, 3), np.uint8), captions, [""] * N, paths, {}, "x")
    return HeldOut(pairs, prefix="reference", suite=None, tokenizer=train_tokenizer(captions, 400), context_length=8)


def embedded(wrong: int) -> Embedded:
    """Return embeddings of which the first `wrong` images find the caption of another."""
    image, text = np.eye(N, dtype=np.float32), np.eye(N, dtype=np.float32)
    image[:wrong] = np.roll(image[:wrong], 1, axis=0)
    return Embedded(image, text, None)


def test_it_rings_once_for_a_fall_beyond_its_interval_and_is_taken_back(heldout: HeldOut, tmp_path: Path) -> None:
    watch = ForgettingWatch(tmp_path)
    assert watch.measured(0, heldout, embedded(0)) == []
    assert watch.measured(1, heldout, embedded(2)) == [], "2 of 40 may be chance"
    (raised,) = watch.measured(2, heldout, embedded(20))
    assert raised.kind == "forgetting"
    assert "R@1, test, n = 40, of old is 50.0 %, at step 0 it was 100.0 %" in raised.words
    assert watch.measured(3, heldout, embedded(20)) == []
    (cleared,) = watch.measured(4, heldout, embedded(0))
    assert (cleared.kind, cleared.words) == ("forgetting", "")


def test_another_session_compares_with_the_snapshot_of_step_0(heldout: HeldOut, tmp_path: Path) -> None:
    first = embedded(0)
    folder = tmp_path / "snapshots" / snapshot_name(dataset="old", split="test", step=0)
    folder.parent.mkdir()
    write_snapshot(
        folder,
        image=first.image,
        text=first.text,
        items=heldout.items(),
        dataset="old",
        split="test",
        step=0,
        model="m",
    )
    watch = ForgettingWatch(tmp_path)
    assert [change.kind for change in watch.measured(5, heldout, embedded(20))] == ["forgetting"]
    assert ForgettingWatch(tmp_path / "nothing").measured(5, heldout, embedded(20)) == []
