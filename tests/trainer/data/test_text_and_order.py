"""Tokens, order and crops: the contents of a batch for (seed, epoch, index)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.data import DataError
from trainer.data.augment import DEVIATION, MEAN, normalized, random_crops
from trainer.data.order import batches, steps_per_epoch
from trainer.data.tokenizer import Tokenizer, train_tokenizer

CAPTIONS = [f"a {c} {s} left of a blue ring on grass" for c in ("red", "green", "pink") for s in ("star", "moon")] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(CAPTIONS, 400)


def test_a_row_is_start_tokens_end_padding(tokenizer: Tokenizer) -> None:
    (row,) = tokenizer.encode(["a red star"], 8).tolist()
    assert row[0] == 1
    assert row[4:] == [tokenizer.eot, 0, 0, 0]
    assert len(set(row[1:4])) == 3
    assert tokenizer.decode(row) == "a red star"


def test_the_end_is_the_largest_id_and_within_the_vocabulary(tokenizer: Tokenizer) -> None:
    rows = tokenizer.encode(CAPTIONS, 24)
    assert (rows == tokenizer.eot).sum(dim=1).eq(1).all()
    assert rows.argmax(dim=1).equal((rows == tokenizer.eot).int().argmax(dim=1))
    assert tokenizer.eot == tokenizer.size - 1
    assert tokenizer.size <= 400


def test_long_captions_keep_their_end_and_stay_different(tokenizer: Tokenizer) -> None:
    one, two = tokenizer.encode(["red star " * 50, "green moon " * 50], 12)
    assert one[-1] == two[-1] == tokenizer.eot
    assert one.argmax() == two.argmax() == 11
    assert not one.equal(two)


def test_no_caption_can_spell_a_special_token(tokenizer: Tokenizer) -> None:
    rows = tokenizer.encode(["<pad> <end> <|endoftext|> [PAD] \0", ""], 64)
    for row in rows:
        end = int((row == tokenizer.eot).int().argmax())
        assert (row == tokenizer.eot).sum() == 1
        assert (row[1:end] >= 2).all()
        assert (row[end + 1 :] == 0).all()


@pytest.mark.slow
@given(st.text(max_size=40))
def test_any_text_is_spelled_and_read_back(text: str) -> None:
    tokenizer = train_tokenizer(CAPTIONS, 320)
    row = tokenizer.encode([text], 400)[0].tolist()
    import unicodedata

    assert tokenizer.decode(row) == unicodedata.normalize("NFC", text).lower().strip() or "\u0130" in text


def test_the_case_does_not_matter(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(["A Red STAR"], 8).equal(tokenizer.encode(["a red star"], 8))


def test_a_tokenizer_comes_back_from_its_file_and_from_its_captions(tokenizer: Tokenizer) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.encode(CAPTIONS, 24).equal(tokenizer.encode(CAPTIONS, 24))
    assert train_tokenizer(CAPTIONS, 400).to_json() == tokenizer.to_json()
    with pytest.raises(DataError, match="cannot be read"):
        Tokenizer.from_json('{"model": 3}')


def test_each_pair_is_seen_at_most_once_an_epoch() -> None:
    epoch = list(batches(103, 10, seed=0, epoch=2))
    assert [len(batch) for batch in epoch] == [10] * 10 == [10] * steps_per_epoch(103, batch_size=10)
    assert len(set(np.concatenate(epoch))) == 100


def test_the_order_follows_from_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(list(batches(64, 8, seed, epoch))).tolist()

    assert order(0, 0) == order(0, 0)
    assert len({tuple(order(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9


def test_too_large_a_batch_is_refused() -> None:
    with pytest.raises(DataError, match="at most 9"):
        batches(9, 10, seed=0, epoch=0)


def images(n: int) -> torch.Tensor:
    return torch.randint(0, 256, (n, 32, 32, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_normalized_is_zero_mean_and_unit_deviation_of_clip() -> None:
    expected = (images(3).numpy() / 255 - np.array(MEAN)) / np.array(DEVIATION)
    assert np.allclose(normalized(images(3)).numpy(), expected.transpose(0, 3, 1, 2), atol=1e-5)


def test_a_crop_does_not_depend_on_its_batch() -> None:
    batch, indices = images(8), np.array([5, 900, 3, 77, 12_000, 1, 2, 4])
    whole = random_crops(batch, indices, 0, 1, 0.6)
    for row, index in enumerate(indices):
        alone = random_crops(batch[row : row + 1], np.array([index]), 0, 1, 0.6)
        assert torch.allclose(alone[0], whole[row], atol=1e-6)


def test_crops_differ_between_pairs_epochs_and_seeds() -> None:
    same = images(1).expand(4, -1, -1, -1)
    crops = [*random_crops(same, np.arange(4), 0, 0, 0.6), *random_crops(same[:1], np.arange(1), 0, 1, 0.6)]
    crops += [*random_crops(same[:1], np.arange(1), 1, 0, 0.6)]
    for i, one in enumerate(crops):
        for other in crops[:i]:
            assert (one - other).abs().max() > 0.1


def test_scale_one_keeps_the_whole_image() -> None:
    assert random_crops(images(4), np.arange(4), 0, 0, 1.0).equal(normalized(images(4)))


@pytest.mark.slow
def test_a_crop_keeps_at_least_the_scale_and_stays_inside() -> None:
    """Images with their column in red and their row in green show where a crop's corners are."""
    size, n = 64, 2000
    ramp = torch.arange(size, dtype=torch.uint8)
    image = torch.stack([ramp.expand(size, size), ramp[:, None].expand(size, size), ramp.expand(size, size)], dim=-1)
    crops = random_crops(image.expand(n, -1, -1, -1), np.arange(n), 0, 0, 0.5)
    columns, rows = (crops[:, c] * DEVIATION[c] * 255 + MEAN[c] * 255 for c in (0, 1))
    middle = size // 2
    width = (columns[:, middle, -9] - columns[:, middle, 8]) / (size - 17) * size
    height = (rows[:, -9, middle] - rows[:, 8, middle]) / (size - 17) * size
    share = (width * height / size**2).numpy()
    assert share.min() > 0.49
    assert share.max() < 1.01
    assert np.histogram(share, bins=5, range=(0.5, 1.0))[0].min() > 300
    assert (width / height).max() < 1.06
    assert columns.min() > -0.01
    assert columns.max() < size - 0.99
    assert columns[:, 0, 0].max() > 10


@pytest.mark.gpu
def test_crops_on_the_gpu_equal_those_on_the_cpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    batch, indices = images(64), np.arange(64)
    on_gpu = random_crops(batch.cuda(), indices, 0, 0, 0.6).cpu()
    assert torch.allclose(on_gpu, random_crops(batch, indices, 0, 0, 0.6), atol=1e-3)
