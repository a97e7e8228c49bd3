"""Small molecules that several tests share, written out by hand."""

import numpy as np
import torch

from hyperboloid.graphs.molecules import MoleculeSet
from hyperboloid.training.batches import Batches

#: Per molecule: kinds of atoms, bonds as (atom, atom, kind).
RING = ([0, 0, 1, 2, 0], [(0, 1, 0), (1, 2, 1), (2, 3, 0), (3, 4, 1), (4, 0, 0)])
CHAIN = ([1, 0, 2], [(0, 1, 2), (1, 2, 0)])
LONE = ([2], [])
APART = ([0, 1, 1, 0], [(0, 1, 0), (2, 3, 1)])
MOLECULES = (RING, CHAIN, LONE, APART)


def molecule_set(molecules=MOLECULES, targets=None, **more):
    """A set of molecules given as in ``MOLECULES``."""
    atoms, bonds = [atoms for atoms, _ in molecules], [bonds for _, bonds in molecules]
    flat = np.array([bond for own in bonds for bond in own], dtype=np.int64).reshape(-1, 3)
    count = len(molecules)
    return MoleculeSet(
        "by hand",
        ("A", "B", "C"),
        ("single", "double", "triple"),
        num_atoms=np.array([len(a) for a in atoms], dtype=np.int32),
        num_bonds=np.array([len(b) for b in bonds], dtype=np.int32),
        atom=np.array([a for own in atoms for a in own], dtype=np.uint8),
        bond=flat[:, 2].astype(np.uint8),
        ends=flat[:, :2].T.astype(np.int32),
        targets=np.arange(count, dtype=float)[:, None] if targets is None else targets,
        target_names=("y",) if targets is None else tuple(f"y{k}" for k in range(targets.shape[1])),
        lines=np.arange(1, count + 1),
        **more,
    )


def random_molecules(count, seed=0):
    """Random trees with a few more bonds, atoms of three kinds."""
    random = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        n = int(random.integers(1, 12))
        pairs = {(int(random.integers(i)), i) for i in range(1, n)}
        if n > 3:
            pairs |= {tuple(sorted(map(int, random.choice(n, 2, replace=False)))) for _ in range(2)}
        out.append((random.integers(3, size=n).tolist(), [(a, b, int(random.integers(3))) for a, b in sorted(pairs)]))
    return tuple(out)


def batch_of(molecules=MOLECULES, network=None, chosen=None, dtype=torch.float64):
    """Their batch as a network, or without one HGNN, wants it."""
    flags = {"self_loops": True, "virtual_node": True}
    if network is not None:
        flags = {"self_loops": network.self_loops, "virtual_node": network.virtual_node}
    made = molecule_set(molecules)
    batches = Batches(made, **flags, dtype=dtype, device=torch.device("cpu"))
    return batches.take(np.arange(len(molecules)) if chosen is None else np.asarray(chosen))


def neighbours(molecule, *, self_loops=True, virtual_node=True):
    """For each node the (source, relation) pairs it aggregates, by plain loops; the virtual node is the last."""
    atoms, bonds = molecule
    n = len(atoms)
    rows = [[(i, 0)] if self_loops else [] for i in range(n)]
    for a, b, kind in bonds:
        rows[a].append((b, kind))
        rows[b].append((a, kind))
    if virtual_node:
        for row in rows:
            row.append((n, 3))
        rows.append([(i, 3) for i in range(n + 1)])
    return rows
