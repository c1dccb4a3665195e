"""Run work in processes independent of the parent's torch, locks and threads."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from types import ModuleType
from typing import Final, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

_WORTH_A_POOL: Final = 8
"""Fewer jobs are done here: a process takes half a second to start."""


def processes() -> int:
    """Return the number of usable cores, at most 16."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, min(16, available))


def spread(function: Callable[[Job], Result], jobs: Sequence[Job], *, count: int | None = None) -> Iterator[Result]:
    """Yield the result of each job as it finishes.

    Spawned, not forked: a fork of a process with threads (torch has some) may hang. Should the pool die (no memory),
    the rest is done here. Closing the iterator drops the jobs not begun. The program that calls is not run again in
    the processes, so a script that trains needs no main guard.

    Args:
        function: Importable by name, pure.
        jobs: Each a second of work or so.
        count: Processes; None for as many as there are cores.
    """
    count = processes() if count is None else count
    done: set[int] = set()
    if count > 1 and len(jobs) >= _WORTH_A_POOL:
        try:
            for index, result in _in_pool(function, jobs, min(count, len(jobs))):
                done.add(index)
                yield result
        except BrokenProcessPool:
            pass
    for index, job in enumerate(jobs):
        if index not in done:
            yield function(job)


def _in_pool(function: Callable[[Job], Result], jobs: Sequence[Job], count: int) -> Iterator[tuple[int, Result]]:
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        with _without_main():
            futures = {pool.submit(function, job): index for index, job in enumerate(jobs)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main module from processes that start meanwhile: spawned ones would run its file from the top again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _end_with_parent() -> None:
    """End this process when its parent dies, even by kill -9.

    It would wait for a next job for ever: each process of a pool holds the other end of the queue that it reads.
    """
    parent = multiprocessing.parent_process()

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    if parent is not None:
        threading.Thread(target=watch, daemon=True, name="end with the parent").start()
