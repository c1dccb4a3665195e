"""The Prompts view: calibration of probabilities, and the effect of each template on each class."""

from explorer.views.prompts.view import PromptsView

__all__ = ["PromptsView"]
