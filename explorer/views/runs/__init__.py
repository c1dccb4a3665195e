"""The Runs view: the table of runs and their training curves."""

from explorer.views.runs.view import RunsView

__all__ = ["RunsView"]
