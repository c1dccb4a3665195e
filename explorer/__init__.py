"""The window: what the runs of `trainer` learned, to look at and to compare."""
