"""Runs on disk: training, opening, evaluation, prediction, rollouts."""

from spherule.runs.directory import RunDirectory
from spherule.runs.evaluation import evaluate, evaluated
from spherule.runs.prediction import predict
from spherule.runs.publish import publish
from spherule.runs.rollout import Rollout, roll_out
from spherule.runs.run import Run
from spherule.runs.scores import Scores, score
from spherule.runs.training import train

__all__ = [
    "Rollout",
    "Run",
    "RunDirectory",
    "Scores",
    "evaluate",
    "evaluated",
    "predict",
    "publish",
    "roll_out",
    "score",
    "train",
]
