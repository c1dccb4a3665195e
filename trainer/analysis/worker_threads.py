"""Share the tiles of a large product among threads, each of which multiplies by itself.

BLAS's own threads wait for each other by spinning: beside a training they were up to ten times slower than as many
threads of Python with one thread of BLAS each.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from trainer.analysis.progress import Progress

Task = TypeVar("Task")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def single_blas_thread(compute: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function to run with BLAS on one thread.

    Libraries are looked up at the call: `threadpool_limits.wrap` would scan them at import and miss those loaded later.
    """

    @functools.wraps(compute)
    def limited(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with threadpool_limits(1, user_api="blas"):
            return compute(*arguments, **options)

    return limited


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(
    tasks: list[Task],
    work: Callable[[Task, Any], None],
    scratch: Callable[[], Any],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    note: str = "",
) -> list[Any]:
    """Do every task, each by whichever thread is free; return what `scratch` made for each thread.

    This thread takes part and alone reports: what `progress` raises ends all of them, as does an error of the work.

    Args:
        tasks: In the order in which they are begun.
        work: Called with a task and the thread's own scratch.
        scratch: Makes the buffers of a thread, once.
        workers: Threads; None: one for each processor, and one alone for a single task.
        note: What it is told with it.
    """
    lock, left = threading.Lock(), iter(tasks)
    errors: list[BaseException] = []
    begun = 0

    def next_task() -> tuple[int, Task] | None:
        nonlocal begun
        with lock:
            for task in left if not errors else ():
                begun += 1
                return begun - 1, task
        return None

    def run(buffer: Any, report: Progress | None) -> None:
        try:
            if report is not None:
                report(0.0, note)
            while (numbered := next_task()) is not None:
                if report is not None and numbered[0]:
                    report(numbered[0] / len(tasks), note)
                work(numbered[1], buffer)
        except BaseException as error:  # it is raised again by the thread that has asked
            errors.append(error)

    buffers = [scratch() for _ in range(max(1, min(workers or cores(), len(tasks))))]
    if len(buffers) == 1:
        run(buffers[0], progress)
    else:
        with threadpool_limits(1, user_api="blas"):
            threads = [threading.Thread(target=run, args=(buffer, None), daemon=True) for buffer in buffers[1:]]
            for thread in threads:
                thread.start()
            run(buffers[0], progress)
            for thread in threads:
                thread.join()
    if errors:
        raise errors[0]
    return buffers
