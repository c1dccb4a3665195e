"""Checkpoints on disk, and the one place that opens files of torch."""
