"""The scores, against scikit-learn."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, roc_auc_score

from hyperboloid.training.metrics import accuracy, roc_auc

# few distinct values, so that most examples hold ties
scores = st.lists(st.sampled_from([-1.5, 0.0, 0.25, 2.0, 1e6]), min_size=1, max_size=40)


@given(scores, scores)
def test_auc_equals_scikit_learns_with_ties(positive, negative):
    expected = roc_auc_score([1] * len(positive) + [0] * len(negative), positive + negative)
    assert roc_auc(torch.tensor(positive), torch.tensor(negative)) == pytest.approx(expected, abs=1e-12)


def test_accuracy_equals_scikit_learns():
    logits = torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    y = torch.randint(0, 5, (200,), generator=torch.Generator().manual_seed(1))
    assert accuracy(logits, y) == pytest.approx(accuracy_score(y, logits.argmax(1)))
