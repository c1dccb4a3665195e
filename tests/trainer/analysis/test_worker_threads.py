"""Tests of `trainer.analysis.worker_threads`: a decorated function runs with BLAS on one thread, and only it."""

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from trainer.analysis.worker_threads import single_blas_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_within_the_call_and_its_own_number_after_it() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))  # loads the library
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        within = single_blas_thread(blas_threads)()
        assert within == {1}
        assert blas_threads() == before
