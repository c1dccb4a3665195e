"""Experiment trackers: curves that they wrote become runs here, and runs here are logged to them, too."""
