"""The process that answers the window's questions: models are kept open here, so the next answer is quick.

`serve` reads questions (`trainer.messages`) from a stream and writes answers to another. `Answers` knows how each is
answered, `OpenModels` keeps the models, `predict` is what the classify command and the window both call.
"""

from trainer.answer.answers import Answers
from trainer.answer.open_models import AnswerError, OpenModels
from trainer.answer.predictions import predict
from trainer.answer.serving import serve

__all__ = ["AnswerError", "Answers", "OpenModels", "predict", "serve"]
