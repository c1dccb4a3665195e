"""The Prompts view: whether probabilities mean what they say, and what each template does to each class."""

from explorer.views.prompts.view import PromptsView

__all__ = ["PromptsView"]
