"""The steps of a batch of models, by every backend: Adam is torch's, and the records of a model are its own."""

import math
from itertools import product

import pytest
import torch

from hyperboloid.training.batch_steps import adam_, judge_


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-6)])
def test_adam_is_torch_s_for_each_model(dtype, tolerance):
    generator = torch.Generator().manual_seed(0)
    lr, decay = torch.tensor([0.1, 0.01, 0.003]).to(dtype), torch.tensor([0.0, 0.5, 1e-3]).to(dtype)
    width, decayed = 1100, 600  # more than a block
    state = torch.randn(3, width, generator=generator, dtype=dtype)
    alone = [[p.double().requires_grad_() for p in row.split([decayed, width - decayed])] for row in state]
    optimizers = [
        torch.optim.Adam([{"params": [p], "weight_decay": w}, {"params": [q]}], lr=rate)
        for (p, q), rate, w in zip(alone, lr.tolist(), decay.tolist(), strict=True)
    ]
    mean, square = torch.zeros_like(state), torch.zeros_like(state)
    decays = (torch.arange(width) < decayed).to(dtype)
    for step in range(1, 7):
        grad = torch.randn(3, width, generator=generator, dtype=dtype) * 10.0 ** -torch.arange(0, 12, 4).view(3, 1)
        adam_(state, grad, mean, square, decays=decays, lr=lr, weight_decay=decay, step=torch.tensor(step))
        for (p, q), optimizer, g in zip(alone, optimizers, grad.double(), strict=True):
            p.grad, q.grad = g[:decayed], g[decayed:]
            optimizer.step()
    expected = torch.stack([torch.cat([p, q]) for p, q in alone]).detach()
    assert (state - expected).abs().max() < tolerance


@pytest.mark.usefixtures("backend")
def test_endless_patience():
    zero, far = torch.zeros(2), torch.full((2,), math.inf)
    records = {
        "best": zero.double() - math.inf,
        "best_loss": far.clone(),
        "best_epoch": torch.zeros(2, dtype=torch.int32),
    }
    better = judge_(
        zero.double(), zero, **records, learning_since=torch.zeros(2, dtype=torch.int32),
        epoch=torch.tensor(10, dtype=torch.int32), epochs=20, patience=2**31, plateau=0.41,
    )  # fmt: skip
    assert better.all()


@pytest.mark.usefixtures("backend")
def test_what_is_better_than_before():
    nan, inf = math.nan, math.inf
    scores = ((0.5, 0.7, nan), (0.3, 0.4, nan, inf, -inf))
    cases = list(product(*scores, (-inf, 0.5, 0.6), (0.35, inf), (0, 4, 5, 9), (0, 7, 12, 25)))
    assert len(cases) > 1024  # more than a block
    for epoch in (10, 20, 21):
        metric, loss, best, best_loss, best_epoch, since = map(torch.tensor, zip(*cases, strict=True))
        best, metric, best_epoch, since = best.double(), metric.double(), best_epoch.int(), since.int()
        now = torch.tensor(epoch, dtype=torch.int32)
        better = judge_(
            metric, loss, best=best, best_loss=best_loss, best_epoch=best_epoch, learning_since=since, epoch=now,
            epochs=20, patience=5, plateau=0.41,
        )  # fmt: skip
        for k, (m, value, record, record_loss, at, begun) in enumerate(cases):
            # a pair is the larger one by its first number, or by its second if those are equal
            expected = (m, -value) > (record, -record_loss) and math.isfinite(value) and not math.isnan(m)
            # within a tenth of 0.41 nothing is learned, and what is no better tells nothing
            begun = min(begun, epoch) if expected and value != 0.4 else begun
            assert since[k] == begun
            expected = expected and epoch - max(at, begun, 5) <= 5 and epoch <= 20
            assert better[k] == expected
            now_best = (m, value, epoch) if expected else (record, record_loss, at)
            assert (best[k], best_loss[k], best_epoch[k]) == pytest.approx(now_best, abs=1e-7)
