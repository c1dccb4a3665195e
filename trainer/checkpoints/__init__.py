"""Checkpoints on disk, and the only code that opens torch files."""
