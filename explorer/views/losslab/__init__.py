"""What do the objectives pull and push? Panels with sliders that teach it live."""

from explorer.views.losslab.view import LossLabView

__all__ = ["LossLabView"]
