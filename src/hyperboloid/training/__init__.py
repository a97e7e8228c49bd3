"""Tasks, the training loop, run folders, and prediction from them."""

from .experiment import Experiment, Run, load
from .fitting import fit
from .predict import predict_labels, predict_links
from .settings import Settings, default_settings

__all__ = ["Experiment", "Run", "Settings", "default_settings", "fit", "load", "predict_labels", "predict_links"]
