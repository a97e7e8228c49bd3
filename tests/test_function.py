"""Functions with a gradient of their own are called as torch calls them, without reading their parameters again."""

import inspect

import pytest
import torch

import hyperboloid.nn  # noqa: F401 (so that all of them are known)
from hyperboloid.function import Function
from hyperboloid.kernels import pair_sqdist


def test_what_is_remembered_are_the_parameters_of_forward():
    functions = [f for f in Function.__subclasses__() if f.__module__.startswith("hyperboloid.")]
    assert len(functions) > 15
    for function in functions:
        code = function.forward.__code__
        assert (
            tuple(inspect.signature(function.forward).parameters)[: code.co_argcount]
            == (code.co_varnames[: code.co_argcount])
        )


def test_a_call_reads_no_parameters(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("read again")

    z, pairs = torch.tensor([[0.0, 1.0], [2.0, 1.0]], requires_grad=True), torch.tensor([[0], [1]])
    pair_sqdist(z, pairs, None).backward()  # loops are compiled
    monkeypatch.setattr(inspect, "_signature_from_function", refuse)
    (slope,) = torch.autograd.grad(pair_sqdist(z, pairs, None), z)
    assert slope.tolist() == [[-4, 0], [4, 0]]


def test_what_has_no_forward_of_its_own_changes_nothing():
    class Abstract(Function):
        pass

    assert not hasattr(torch.autograd.Function.forward, "__signature__")
    with pytest.raises(NotImplementedError):
        Abstract.apply(torch.ones(1))


def test_arguments_that_do_not_fit_are_refused_and_others_may_be_left_out():
    class Scaled(Function):
        @staticmethod
        def forward(x, factor=3.0):
            return factor * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return ctx.factor * grad, None

    x = torch.ones(2, requires_grad=True)
    Scaled.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(TypeError, match="too many positional arguments"):
        Scaled.apply(x, 1.0, 2.0)
