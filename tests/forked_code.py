"""Programs of a few lines that open a workspace: forked from a process that has imported the store, or the training."""

import sys

TRAINING = "tests.forked_training"


def command(code: str, *words: str, trains: bool = False) -> list[str]:
    """Return the command that runs the code with these arguments, as `python -c` does."""
    return [sys.executable, "-m", TRAINING if trains else __name__, code, *words]


def warm() -> None:
    """Import what the programs need."""
    import trainer.api
    import trainer.scheduling.queue
    import trainer.store

    assert all((trainer.api, trainer.scheduling.queue, trainer.store.Workspace))


def run() -> None:
    """Run the code of the first argument."""
    source = sys.argv.pop(1)
    exec(compile(source, "<code>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    run()
