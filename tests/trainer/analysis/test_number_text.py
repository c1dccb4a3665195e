"""Numbers at axes: each is told from its neighbors, none is longer than its room."""

import pytest

from trainer.analysis.number_text import tick_texts


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ((0, 5e-4, 1e-3), ["0", "0.0005", "0.0010"]),
        ((0, 2e-5, 4e-5), ["0", "2e−5", "4e−5"]),
        ((1e-6, 1.5e-6), ["1e−6", "1.5e−6"]),
        ((-3e-12, 0, 3e-12), ["−3e−12", "0", "3e−12"]),
        ((0.2701, 0.27012), ["0.27010", "0.27012"]),
        ((0, 0.25, 0.5), ["0", "0.25", "0.50"]),
        ((0, 20_000, 40_000), ["0", "20,000", "40,000"]),
        ((0, 2e6, 4e6), ["0", "2e6", "4e6"]),
        ((5,), ["5"]),
        ((), []),
    ],
)
def test_ticks_have_the_digits_that_tell_them_apart(ticks, texts) -> None:
    assert tick_texts(ticks) == texts


@pytest.mark.parametrize("power", range(-15, 16))
@pytest.mark.parametrize("step", [1, 2, 2.5, 5])
def test_each_tick_reads_as_its_value(power: int, step: float) -> None:
    ticks = [at * step * 10.0**power for at in range(-4, 5)]
    read = [float(text.replace("−", "-").replace(",", "")) for text in tick_texts(ticks)]
    assert read == pytest.approx(ticks, rel=1e-9)
