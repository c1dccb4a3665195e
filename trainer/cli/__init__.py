"""One file per command of `trainer`: `GROUP`, `HELP`, `add_arguments`, `run`. Heavy imports happen in `run` only."""
