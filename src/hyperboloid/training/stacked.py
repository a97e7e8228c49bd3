"""The parameters of many models in one tensor."""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import prod

import torch
from torch import Tensor

#: Numbers that a GPU loads at once. Each model starts at a multiple, and so do its parameters where their sizes allow.
ALIGNED = 4


class Stacked:
    """Named tensors ``(M, …)`` side by side in one, so that what is done to all of them is one operation.

    Attributes:
        flat: ``(M, P)``, the largest first, zeros at the end.
        named: each tensor as a view of it.
    """

    def __init__(self, flat: Tensor, shapes: Mapping[str, torch.Size]) -> None:
        self.flat = flat
        self._shapes = shapes
        self._zeros: dict[int, Tensor] = {}
        widths = [prod(shape) for shape in shapes.values()]
        parts = flat.split([*widths, flat.size(1) - sum(widths)], dim=1)
        self.named = {n: t.view(-1, *shape) for (n, shape), t in zip(shapes.items(), parts[:-1], strict=True)}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Stacked:
        """A copy of tensors ``(M, …)``."""
        ordered = dict(sorted(tensors.items(), key=lambda item: -item[1].numel()))
        flat = torch.cat([t.reshape(t.size(0), -1) for t in ordered.values()], dim=1)
        flat = torch.nn.functional.pad(flat, (0, -flat.size(1) % ALIGNED))
        return cls(flat, {name: t.shape[1:] for name, t in ordered.items()})

    def joined(self, tensors: Mapping[str, Tensor | None]) -> Tensor:
        """Other tensors of the same names and shapes ``(M, P)`` in the same order; 0 where there is none."""
        found = [tensors.get(name) for name in self._shapes]
        parts = [
            self._nothing(prod(shape)) if t is None else t.reshape(self.flat.size(0), -1)
            for t, shape in zip(found, self._shapes.values(), strict=True)
        ]
        return torch.cat([*parts, self._nothing(self.flat.size(1) - sum(p.size(1) for p in parts))], dim=1)

    def columns(self, names: Container[str]) -> Tensor:
        """1 in the columns of some tensors, 0 in the others ``(P,)``."""
        parts = [self.flat.new_full((prod(shape),), name in names) for name, shape in self._shapes.items()]
        chosen = torch.cat(parts)
        return torch.nn.functional.pad(chosen, (0, self.flat.size(1) - chosen.numel()))

    def _nothing(self, width: int) -> Tensor:
        """Zeros ``(M, width)``, made once."""
        if width not in self._zeros:
            self._zeros[width] = self.flat.new_zeros(self.flat.size(0), width)
        return self._zeros[width]

    def clone(self) -> Stacked:
        """The same tensors in memory of their own."""
        return Stacked(self.flat.clone(), self._shapes)

    def select(self, indices: Tensor) -> Stacked:
        """Some of the models."""
        return Stacked(self.flat.index_select(0, indices), self._shapes)

    def model(self, index: int) -> dict[str, Tensor]:
        """A copy of one model's tensors."""
        return {name: t[index].clone() for name, t in self.named.items()}
