"""When a training run stops: patience, and from when on it counts.

A validation score says little before anything is learned. Link prediction starts at a saddle point of its loss: as long
as all points lie in one place, so close that every distance is about 0, gradients are about 0 too, and a small learning
rate takes hundreds of epochs to leave. The AUC of such points, that of the features' random projections, may be high,
fall, and rise far beyond only after the loss has moved. Classes of nodes start where all are equally likely; on a graph
without features some initialisations stay there for 200 epochs, and one of the first epochs may by chance have the best
accuracy until then. So epochs on that plateau do not count for patience, and a best score that was found there
does not start it: only a better one does, found when the plateau is left. (Of GCN's points on Amazon at d = 8 the first
have an AUC of 0.93, which falls to 0.87 as the loss begins to fall, is back after 300 epochs, and then rises to 0.97.)
"""

from __future__ import annotations

#: The plateau is left where the validation loss differs from it by this part.
LEFT_BY = 0.1
#: A model is waited for so many times its patience: with a strong penalty it never leaves the plateau.
LONGEST_WAIT = 5


def bounds_of(plateau: float) -> tuple[float, float]:
    """Between which losses a model is on the plateau; between 0 and 0, where there is none, it never is."""
    return (1 - LEFT_BY) * plateau, (1 + LEFT_BY) * plateau


def longest_wait(plateau: float, patience: int, epochs: int) -> int:
    """The epoch from which patience counts if no better score is found off the plateau; 0 where there is none."""
    return min(LONGEST_WAIT * patience, epochs) if plateau else 0


def last_epoch(best_epoch: int, learning_since: int, patience: int, epochs: int) -> int:
    """The epoch at which patience ends, or the epochs do, if there is none better than the best so far.

    Args:
        best_epoch: that of the best score so far; the first epochs, as many as there is patience, do not count.
        learning_since: when a first best score was found off the plateau, or else :func:`longest_wait`.
        patience: how many epochs may pass without a better one.
        epochs: how many there are.
    """
    return min(epochs, max(best_epoch, learning_since, patience) + patience)
