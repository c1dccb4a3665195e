"""The Timeline view: a run's snapshots in one fixed frame over training, with synchronized curves."""

from explorer.views.timeline.view import TimelineView

__all__ = ["TimelineView"]
