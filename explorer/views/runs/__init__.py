"""Which runs are there, and how do they learn?"""

from explorer.views.runs.view import RunsView

__all__ = ["RunsView"]
