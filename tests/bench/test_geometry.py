"""The geometry's table: what counts as exact is exact, and forms that cancel are told from those that do not."""

import pytest
import torch
from mpmath import mp, mpf

from hyperboloid.bench.geometry import (
    CENTROID,
    DISTANCE,
    EXP,
    LOG,
    MEMBERS,
    OPERATIONS,
    OURS,
    TEXTBOOK,
    errors,
    exact_result,
    inputs,
    ways,
)

CPU = torch.device("cpu")


def inner(x, y):
    return mp.fdot(x[1:], y[1:]) - x[0] * y[0]


def lifted(space):
    """The point with this space part."""
    return [mp.sqrt(1 + mp.fdot(space, space)), *space]


def point(coordinates, t):
    """A float32 input as a point of Minkowski space, with all digits."""
    v = [mpf(a) for a in t.double().tolist()]
    if coordinates == "points":
        return lifted(v[1:])
    square = mp.fdot(v, v)
    if coordinates == "ball":
        return lifted([2 * a / (1 - square) for a in v])
    return lifted([mp.sinh(mp.sqrt(square)) / mp.sqrt(square) * a for a in v])


def normal(x):
    length = mp.sqrt(mp.fdot(x[1:], x[1:]))
    return [mp.asinh(length) / length * a for a in x[1:]]


def textbook(operation, coordinates, given):
    """The result of one row by the definitions in Minkowski space."""
    if operation == CENTROID:
        points = [point(coordinates, t) for t in given[0]]
        s = [mp.fsum(column) for column in zip(*points, strict=True)]
        return normal([a / mp.sqrt(-inner(s, s)) for a in s])
    x = point(coordinates, given[0])
    if operation == EXP:
        space = [mpf(a) for a in given[1].double().tolist()][1:]
        v = [mp.fdot(x[1:], space) / x[0], *space]
        length = mp.sqrt(inner(v, v))
        return normal([mp.cosh(length) * a + mp.sinh(length) / length * b for a, b in zip(x, v, strict=True)])
    y = point(coordinates, given[1])
    distance = mp.acosh(-inner(x, y))
    if operation == DISTANCE:
        return [distance]
    w = [b + inner(x, y) * a for a, b in zip(x, y, strict=True)]
    return [distance / mp.sqrt(inner(w, w)) * a for a in w]


CASES = [(DISTANCE, "normal"), (DISTANCE, "points"), (EXP, "points"), (LOG, "points")]
CASES += [(CENTROID, coordinates) for coordinates in ("normal", "points", "ball")]


@pytest.mark.parametrize("radius", [6, 9])
@pytest.mark.parametrize(("operation", "coordinates"), CASES)
def test_the_exact_result_is_exact(operation, coordinates, radius):
    given = inputs(operation, coordinates, radius, 2 * MEMBERS, CPU)
    assert all(t.dtype == torch.float32 for t in given)
    exact = exact_result(operation, coordinates, given)
    for row in range(2):
        with mp.workdps(50):
            true = textbook(operation, coordinates, tuple(t[row] for t in given))
            true = torch.tensor([float(a) for a in true], dtype=torch.float64)
        found = exact[row].reshape(true.shape)
        # double precision loses digits too, out there, but no more than float32 has: errors are told from 1e-8 up
        assert float((found - true).norm() / true.norm()) < 1e-9


def test_exp_and_log_in_normal_coordinates_undo_each_other_and_have_the_length_of_the_distance():
    u, v = inputs(LOG, "normal", 6, 50, CPU)
    t = exact_result(LOG, "normal", (u, v))
    torch.testing.assert_close(t.norm(dim=-1), exact_result(DISTANCE, "normal", (u, v)), rtol=1e-9, atol=0)
    torch.testing.assert_close(t.norm(dim=-1), torch.full((50,), 0.25, dtype=torch.float64), rtol=1e-3, atol=0)
    back = exact_result(EXP, "normal", (u.double(), t))
    torch.testing.assert_close(back, v.double(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_far_out_the_textbook_loses_what_we_keep(operation):
    by_name = ways(CPU)[operation]
    ours, lost = errors(operation, by_name[OURS], 9, 800, CPU)
    assert ours < 1e-5
    assert lost == 0
    theirs, lost = errors(operation, by_name[TEXTBOOK], 9, 800, CPU)
    assert theirs > 1e-3
    assert 0 <= lost < 1


def test_near_the_origin_all_agree():
    for operation, by_name in ways(CPU).items():
        for name, way in by_name.items():
            largest, lost = errors(operation, way, 0.5, 400, CPU)
            assert largest < 1e-4, (operation, name)
            assert lost == 0
