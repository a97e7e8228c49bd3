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


def test_a_score_that_is_no_number_has_no_auc():
    """Sorted as the largest number it would pass for a perfect one; the models beside it are as they were."""
    positive, negative = torch.tensor([[0.9, 0.4], [torch.nan, 0.9], [0.9, 0.4]]), torch.tensor([0.5, 0.1]).repeat(3, 1)
    negative[2, 0] = torch.nan
    found = roc_auc(positive, negative)
    assert found.isnan().tolist() == [False, True, True]
    assert found[0] == 0.75


def test_equal_areas_are_equal_to_the_last_bit():
    """Both are 54/98: between equal ones the loss decides."""
    one = roc_auc(torch.tensor([3.0, 2, 2, 2, 0, 3, 3]), torch.tensor([1.0, 2, 3, 1, 3, 3, 1]))
    other = roc_auc(torch.tensor([2.0, 1, 1, 2, 3, 1, 2]), torch.tensor([1.0, 3, 2, 3, 0, 1, 1]))
    assert one == other


def test_accuracy_equals_scikit_learns():
    logits = torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    y = torch.randint(0, 5, (200,), generator=torch.Generator().manual_seed(1))
    assert accuracy(logits, y) == pytest.approx(accuracy_score(y, logits.argmax(1)))
