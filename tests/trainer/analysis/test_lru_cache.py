import functools

import numpy as np

from trainer.analysis.lru_cache import LruCache


def test_it_makes_what_that_of_the_standard_library_makes() -> None:
    made: list[int] = []
    ours: LruCache[int, int] = LruCache(4)
    theirs = functools.lru_cache(maxsize=4)(lambda key: key * key)
    for key in np.random.default_rng(0).integers(0, 8, 500).tolist():
        assert ours.obtain(key, lambda key=key: made.append(key) or key * key) == theirs(key)
        assert (len(made), len(ours)) == (theirs.cache_info().misses, theirs.cache_info().currsize)


def test_what_was_read_or_set_last_stays() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache["a"], cache["b"] = 1, 2
    assert cache["a"] == 1
    cache["c"] = 3
    assert [*cache.items()] == [("a", 1), ("c", 3)]
    cache["a"] = 4
    cache["d"] = 5
    assert [*cache.items()] == [("a", 4), ("d", 5)]
