"""What the tests of single layers share: sizes, features, and parameters far from where they start."""

import torch

N, K, D = 8, 5, 4


def randomize(module, scale=0.4):
    """Parameters in float64, all different from their start, but for β as it was asked for."""
    module.double().reset_parameters()  # β as float64 holds it
    for name, p in module.named_parameters():
        if not name.endswith("raw"):
            p.data.normal_(0, scale)
    return module


def features(n=N, k=K):
    return torch.randn(n, k, dtype=torch.float64)
