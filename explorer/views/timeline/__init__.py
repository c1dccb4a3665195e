"""How does the geometry form while the run trains? Its snapshots in one fixed frame, and curves that share the time."""

from explorer.views.timeline.view import TimelineView

__all__ = ["TimelineView"]
