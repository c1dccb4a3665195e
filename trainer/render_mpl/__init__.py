"""Figures for papers and reports: every chart of `trainer.charts` in matplotlib, on white, at print size.

matplotlib is imported inside functions only, so that the shelf stays quick to import.
"""
