"""Random masks: a function of (seed, epoch, call, element) alone, and as good as random."""

import math
from contextlib import nullcontext
from itertools import combinations

import pytest
import torch
from torch.func import jacrev, vmap

from hyperboloid.kernels import dropout, fold, keep_mask, random_stream, use_backend
from hyperboloid.kernels.random import hash32_int

CPU = torch.device("cpu")
N = 100_000


def draw(seed, epoch, *, calls=1, p=0.5, shape=(N,)):
    """The masks of the first calls of a stream."""
    with random_stream(seed, epoch):
        return [keep_mask(shape, p, CPU) for _ in range(calls)]


def test_the_same_seed_and_epoch_give_the_same_masks():
    for first, second in zip(draw(3, 7, calls=3), draw(3, 7, calls=3), strict=True):
        assert torch.equal(first, second)


def test_a_mask_does_not_depend_on_its_shape():
    assert torch.equal(draw(0, 0, shape=(20, 30))[0].flatten(), draw(0, 0, shape=(600,))[0])


def test_a_larger_probability_drops_more_of_the_same_elements():
    lenient, strict = draw(0, 0, p=0.2)[0], draw(0, 0, p=0.7)[0]
    assert (strict <= lenient).all()
    assert (strict < lenient).any()


# ---- statistics; each bound is 4 standard deviations of what true randomness would give


@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.9])
def test_share_of_dropped_elements(p):
    for seed in range(5):
        mask = draw(seed, 0, p=p)[0]
        assert abs(mask.double().mean() - (1 - p)) < 4 * math.sqrt(p * (1 - p) / N)


def assert_uncorrelated(a, b):
    signs = (2.0 * a - 1) * (2.0 * b - 1)
    assert abs(signs.mean()) < 4 / math.sqrt(signs.numel())


def test_neighbouring_elements_are_uncorrelated():
    mask = draw(1, 2)[0]
    for lag in (1, 2, 3, 16, 64, 1000):
        assert_uncorrelated(mask[lag:], mask[:-lag])


def test_calls_epochs_and_seeds_are_uncorrelated():
    masks = draw(0, 0, calls=3)
    masks += [draw(0, epoch)[0] for epoch in (1, 2, 1000)]
    masks += [draw(seed, 0)[0] for seed in (1, 2, 2**31 - 1)]
    masks += [draw(1, 1)[0]]  # neither seed and epoch nor their sum may be confused
    for a, b in combinations(masks, 2):
        assert_uncorrelated(a, b)


def test_one_element_over_many_epochs():
    first = torch.stack([draw(0, epoch, shape=(8,))[0] for epoch in range(4000)])
    assert (first.double().mean(0) - 0.5).abs().max() < 4 * 0.5 / math.sqrt(4000)
    assert_uncorrelated(first[1:], first[:-1])


def test_runs_of_eight_bits_are_uniform():
    # chi-square over the 256 patterns of 8 neighbouring elements: mean 255, standard deviation √510
    patterns = draw(5, 0, shape=(N, 8))[0].long() @ (2 ** torch.arange(8))
    counts = torch.bincount(patterns, minlength=256).double()
    chi_square = ((counts - N / 256).square() / (N / 256)).sum()
    assert abs(chi_square - 255) < 4 * math.sqrt(2 * 255)


# ---- the stream


def test_probability_zero_drops_nothing_and_still_takes_its_turn():
    with random_stream(0, 0):
        assert keep_mask((5,), 0.0, CPU) is None
        x = torch.ones(5)
        assert dropout(x, 0.0, training=True) is x
        third = keep_mask((N,), 0.5, CPU)
    assert torch.equal(third, draw(0, 0, calls=3)[2])


def test_a_tensor_of_probability_zero_keeps_everything():
    with random_stream(0, 0):
        assert keep_mask((N,), torch.tensor(0.0), CPU).all()


def test_streams_nest():
    with random_stream(0, 0):
        first = keep_mask((N,), 0.5, CPU)
        draw(1, 1)
        second = keep_mask((N,), 0.5, CPU)
    expected = draw(0, 0, calls=2)
    assert torch.equal(first, expected[0])
    assert torch.equal(second, expected[1])


def test_a_model_draws_the_same_masks_alone_and_in_a_batch():
    seeds, p = torch.tensor([0, 7, 8, 2**31 - 1], dtype=torch.int32), torch.tensor([0.0, 0.1, 0.5, 0.9])

    def model(seed, p):
        with random_stream(seed, 3):
            return keep_mask((50, 20), p, CPU), dropout(torch.ones(1000), p, training=True)

    masks, dropped = vmap(model)(seeds, p)
    for m in range(4):
        mask, alone = model(int(seeds[m]), float(p[m]))
        assert torch.equal(masks[m], torch.ones(50, 20).bool() if mask is None else mask)
        torch.testing.assert_close(dropped[m], alone)


def test_without_a_stream_torch_governs():
    masks = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        masks += [keep_mask((N,), 0.5, CPU), keep_mask((N,), 0.5, CPU)]
    assert torch.equal(masks[0], masks[2])
    assert torch.equal(masks[1], masks[3])
    for a, b in combinations([masks[0], masks[1], masks[4]], 2):
        assert_uncorrelated(a, b)


# ---- dropout


@pytest.mark.parametrize("p", [0.25, torch.tensor(0.25)])
def test_dropout_zeroes_or_scales(p):
    x = torch.linspace(1, 2, N, requires_grad=True)
    with random_stream(0, 0):
        y = dropout(x, p, training=True)
    kept = draw(0, 0, p=0.25)[0]
    torch.testing.assert_close(y, torch.where(kept, x / 0.75, 0))
    y.sum().backward()
    torch.testing.assert_close(x.grad, kept / 0.75)


def test_no_dropout_outside_training():
    x = torch.ones(5)
    assert dropout(x, 0.9, training=False) is x


@pytest.mark.parametrize("seed", [0, 5, 123456789, 2**31 - 1])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.999])
def test_every_way_to_a_mask_gives_the_same_bits(seed, p):
    cpu, exact = torch.device("cpu"), torch.tensor(p, dtype=torch.float64)
    with random_stream(seed, 7):
        loop = [keep_mask((50, 31), p, cpu) for _ in range(3)]
    with random_stream(seed, 7):
        plain = [keep_mask((50, 31), exact, cpu) for _ in range(3)]
    with random_stream(torch.tensor(seed), 7):
        batched = [keep_mask((50, 31), exact, cpu) for _ in range(3)]
    for one, two, three in zip(loop, plain, batched, strict=True):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.7, 0.9, 0.999])
def test_a_number_is_the_same_probability_for_every_kind_of_key(p):
    with random_stream(11, 5):
        loop = keep_mask((3000,), p, CPU)
    with random_stream(torch.tensor(11), 5):
        assert torch.equal(keep_mask((3000,), p, CPU), loop)


# ---- every backend draws the same

SIZES = [(1,), (7, 3), (2048,), (2, 2000)]  # blocks that are full, and blocks that are not


@pytest.mark.usefixtures("backend")
def test_every_backend_folds_keys_alike():
    keys = torch.tensor([0, 1, -1, 2**31 - 1, -(2**31), 123456789], dtype=torch.int32)
    # two rounds of xor-shift and multiply in whole numbers of any size
    expected = [hash32_int(hash32_int(int(k) & 0xFFFFFFFF) + 7 & 0xFFFFFFFF) for k in keys]
    for number in (7, torch.tensor(7, dtype=torch.int32)):
        assert [int(k) & 0xFFFFFFFF for k in fold(keys, number)] == expected
        assert torch.equal(vmap(lambda key, number=number: fold(key, number))(keys), fold(keys, number))
    assert torch.equal(vmap(lambda number: fold(keys[3], number))(keys), torch.stack([fold(keys[3], k) for k in keys]))


def same_as_the_reference(function, *inputs):
    """Outputs and gradients of the backend in use; they must be those of the reference, bit by bit."""
    results = []
    for chosen in (nullcontext(), use_backend("reference")):
        with chosen:
            own = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
            outputs = function(*own)
            wanted = [o for o in outputs if o.requires_grad]
            moved = [t for t in own if t.requires_grad]
            probes = [torch.linspace(-1, 1, o.numel(), dtype=o.dtype).view(o.shape) for o in wanted]
            gradients = torch.autograd.grad(wanted, moved, probes) if wanted else ()
        results.append([*outputs, *gradients])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        assert torch.equal(ours, theirs)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("p", [0.2, 0.7, torch.tensor(0.7), torch.tensor(0.4, dtype=torch.float64)])
@pytest.mark.parametrize("seed", [3, torch.tensor(3, dtype=torch.int32)])
def test_every_backend_draws_and_drops_alike(shape, p, seed):
    generator = torch.Generator().manual_seed(0)

    def draw(x, y):
        with random_stream(seed, 7):
            return [keep_mask(shape, p, CPU), dropout(x, p, training=True), dropout(y.t(), p, training=True)]

    x, y = torch.randn(shape, generator=generator), torch.randn(30, 40, generator=generator, dtype=torch.float64)
    same_as_the_reference(draw, x, y)


@pytest.mark.usefixtures("backend")
def test_an_element_that_draws_the_probability_itself_is_kept():
    key = fold(fold(3, 7), 1)
    drawn = (hash32_int(key + 5 & 0xFFFFFFFF) >> 8) / 2**24
    for p in (drawn, torch.tensor(drawn)):
        for seed in (3, torch.tensor(3)):
            with random_stream(seed, 7):
                assert keep_mask((6,), p, CPU)[5]
    with random_stream(3, 7):
        assert not keep_mask((6,), drawn + 2**-24, CPU)[5]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("in_dims", [(0, 0, 0), (None, 0, 0), (0, None, 0), (0, 0, None), (1, None, None)])
def test_every_backend_drops_alike_in_a_batch(in_dims):
    seeds, p = torch.tensor([0, 7, 2**31 - 1], dtype=torch.int32), torch.tensor([0.0, 0.25, 0.9])
    x = torch.randn(3, 3, 700, generator=torch.Generator().manual_seed(0))

    def draw(x, seed, p):
        with random_stream(seed, torch.tensor(2, dtype=torch.int32)):
            return keep_mask((50, 31), p, CPU), dropout(x, p, training=True)

    seeds, p = (t if dim == 0 else t[1] for t, dim in zip((seeds, p), in_dims[1:], strict=True))
    # neither the models nor their rows lie side by side
    same_as_the_reference(lambda x: vmap(draw, in_dims=in_dims)(x[:, :, :650], seeds, p), x)
    same_as_the_reference(lambda x: vmap(draw, in_dims=in_dims)(x.view(3, 21, 100)[:, :, :99], seeds, p), x)
    same_as_the_reference(lambda x: vmap(draw, in_dims=in_dims)(x[:, :2], seeds, p), x)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("shape", [(), (0,), (0, 70), (3, 0), (2, 3, 70)])
def test_every_backend_drops_alike_in_any_shape(shape):
    def draw(x):
        with random_stream(3, 7):
            return [dropout(x, 0.4, training=True)]

    same_as_the_reference(draw, torch.randn(shape, generator=torch.Generator().manual_seed(0)))


def test_wide_rows_begin_where_four_numbers_can_be_read():
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        pytest.skip("kernels are compiled, for a GPU only")
    with use_backend("triton"), random_stream(3, 7):
        strides = [dropout(torch.ones(shape), 0.4, training=True).stride() for shape in ((4, 767), (4, 768), (4, 40))]
    assert strides == [(768, 1), (768, 1), (40, 1)]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_probabilities_of_half_precision_and_learned_ones(backend):
    """Halves cannot count what masks are drawn from; a mask has no gradient."""
    with use_backend(backend):
        (exact,) = draw(3, 7, p=0.25)
        for p in (torch.tensor(0.25, dtype=torch.float16), torch.tensor(0.25, requires_grad=True)):
            assert torch.equal(*draw(3, 7, p=p), exact)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16, torch.complex64])
def test_what_no_kernel_takes_is_dropped_too(dtype):
    x = torch.arange(1, 41).to(dtype)
    with random_stream(3, 7):
        out = dropout(x, 0.25, training=True)
    with random_stream(3, 7):
        keep = keep_mask((40,), 0.25, CPU)
    torch.testing.assert_close(out, x * keep / 0.75)


def test_jacobians_of_dropout():
    def drop(x):
        with random_stream(3, 7):
            return dropout(x, 0.25, training=True)

    scale = drop(torch.ones(6))
    with torch.no_grad():
        torch.testing.assert_close(jacrev(drop)(torch.ones(6)), scale.diag())
    torch.testing.assert_close(jacrev(drop)(torch.ones(6)), scale.diag())
