"""Training of shallow models: they learn embeddings by themselves; nodes are then classified from these."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property

import torch
from torch import Tensor

from hyperboloid.errors import InputError, TrainingError
from hyperboloid.nn.shallow import ShallowEncoder, import_extra

from .checkpoint import copy_state
from .guard import blame, finite
from .loop import Training
from .settings import Settings
from .tasks import BaseTask, NodeTask, Score

#: Strengths of the classifier's L2 penalty that are tried, scikit-learn's C (the larger, the weaker).
C_GRID = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
#: Logit of a class without training nodes. Those of the others sum to 0, so that one of them is always larger.
UNSEEN = -20.0


_Learned = dict[tuple[object, ...], tuple[float, dict[str, Tensor]]]  # loss and state, by what they follow from
_learned: ContextVar[_Learned | None] = ContextVar("learned", default=None)


@contextmanager
def embeddings_kept() -> Iterator[None]:
    """Learn embeddings for nodes once for each seed, however the nodes are split: they do not depend on it."""
    token = _learned.set({})
    try:
        yield
    finally:
        _learned.reset(token)


class ShallowTraining(Training):
    """A shallow model on its way.

    Links are judged after every epoch, as for other models. Classes are not known to the embeddings, so nothing can be
    judged before the last epoch: then a logistic regression on the training nodes' embeddings becomes the encoder's
    classifier. Arguments are those of :class:`Training`.
    """

    encoder: ShallowEncoder

    def __init__(self, model: str, task: BaseTask, settings: Settings, seed: int) -> None:
        super().__init__(model, task, settings, seed)
        self.learning_since = 0  # they do not learn by the loss of links, and leave its plateau within a few epochs
        if isinstance(task, NodeTask):
            import_extra("sklearn")  # better now than hours later
            assert task.graph.y is not None
            if task.graph.y[task.split.train].unique().numel() < 2:
                raise InputError("All training nodes are of one class, so there is nothing to learn.")

    @property
    def done(self) -> bool:
        """Out of epochs; for links also out of patience."""
        return self.epoch >= self.settings.epochs if isinstance(self.task, NodeTask) else super().done

    @cached_property
    def _key(self) -> tuple[object, ...]:
        """What the embeddings follow from."""
        return type(self.encoder), self.settings, self.seed, self.task.graph.checksum, self.task.dtype

    @property
    def _can_be_judged(self) -> bool:
        return self.done or not isinstance(self.task, NodeTask)

    def _optimizer(self) -> None:
        return None

    def _learn(self) -> float:
        task, settings = self.task, self.settings
        learned = _learned.get() if isinstance(task, NodeTask) else None
        if learned is not None and self._key in learned:
            loss, state = learned[self._key]
            self.encoder.load_state_dict(state)
            self.epoch = settings.epochs
        else:
            self.encoder.train()
            count = {"epoch": self.epoch, "epochs": settings.epochs}
            loss = self.encoder.train_epoch(task.edge_index, task.edge_weight, lr=settings.lr, seed=self.seed, **count)
        if not (math.isfinite(loss) and finite(list(self.encoder.parameters()))):
            raise self._blame()
        if isinstance(task, NodeTask) and self.done:
            if learned is not None:
                learned[self._key] = loss, copy_state(self.encoder)
            self._classify(task)
        return loss

    def _blame(self) -> TrainingError:
        return blame(self.encoder, lambda: None, self.epoch)

    @torch.no_grad()
    def _classify(self, task: NodeTask) -> None:
        """Fit the classifier; the validation nodes choose the strength of its penalty."""
        classifier = self.encoder.classifier
        assert classifier is not None
        assert task.graph.y is not None
        train = task.split.train
        v, y = self.encoder.embedding.cpu()[train], task.graph.y[train]
        best, chosen = Score(-math.inf, -math.inf), copy_state(classifier)
        for strength in C_GRID:
            weight, bias = logistic_regression(v, y, classifier.out_features, strength)
            classifier.weight.copy_(weight)
            classifier.bias.copy_(bias)
            score = self.score("val")
            if score > best:
                best, chosen = score, copy_state(classifier)
        classifier.load_state_dict(chosen)


def logistic_regression(v: Tensor, y: Tensor, classes: int, strength: float) -> tuple[Tensor, Tensor]:
    """Weights ``(classes, d)`` and biases ``(classes,)`` of scikit-learn's logistic regression, in float64.

    Args:
        v: embeddings ``(n, d)``.
        y: classes ``(n,)``, at least two different ones.
        classes: number of classes, those that ``y`` lacks included.
        strength: scikit-learn's C.
    """
    model = import_extra("sklearn.linear_model").LogisticRegression(C=strength, max_iter=1000)
    with warnings.catch_warnings():
        # A weak penalty may need more steps than that; the validation nodes judge what it has come to.
        warnings.simplefilter("ignore", import_extra("sklearn.exceptions").ConvergenceWarning)
        model.fit(v.double().numpy(), y.numpy())
    coefficients, intercepts = torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_)
    if len(model.classes_) == 2:  # given as one logit, the second class's against the first's
        coefficients = torch.cat([-coefficients, coefficients]) / 2
        intercepts = torch.cat([-intercepts, intercepts]) / 2
    weight = torch.zeros(classes, v.size(1), dtype=torch.float64)
    bias = torch.full((classes,), UNSEEN, dtype=torch.float64)
    weight[model.classes_], bias[model.classes_] = coefficients, intercepts
    return weight, bias
