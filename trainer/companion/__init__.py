"""Runs of trainings that another program does: what its loop logs becomes a row like any other. Imports no torch."""
