"""GGNN against PyG's GatedGraphConv where that can do the same, and against plain loops where it cannot."""

import torch
from molecules import MOLECULES, batch_of, neighbours, random_molecules
from torch_geometric.nn import GatedGraphConv

from hyperboloid.nn.ggnn import GGNN
from hyperboloid.nn.graph_model import GraphSizes

SIZES = GraphSizes(kinds=3, features=0, relations=3, targets=2)


def test_steps_are_those_of_gated_graph_conv_where_bonds_are_of_one_kind():
    torch.manual_seed(0)
    molecules = tuple((atoms, [(a, b, 0) for a, b, _ in bonds]) for atoms, bonds in MOLECULES)
    model = GGNN(SIZES, 5, 3).double()
    conv = GatedGraphConv(5, 3).double()
    with torch.no_grad():
        conv.weight.copy_(model.lin.weight[0].T.expand(3, -1, -1))
        conv.rnn.load_state_dict(model.gru.state_dict())
    edges, first = [], 0
    for atoms, bonds in molecules:
        edges += [(first + a, first + b) for a, b, _ in bonds] + [(first + b, first + a) for a, b, _ in bonds]
        first += len(atoms)
    x, h = model.states(batch_of(molecules, model))
    torch.testing.assert_close(h, conv(x, torch.tensor(edges).T), rtol=1e-10, atol=1e-10)


def test_a_batch_is_what_loops_over_single_molecules_give():
    torch.manual_seed(0)
    model = GGNN(SIZES, 5, 2).double()
    found = model(batch_of(network=model))
    for k, molecule in enumerate(MOLECULES):
        x = h = model.embedding.weight[torch.tensor(molecule[0])]
        rows = neighbours(molecule, self_loops=False, virtual_node=False)
        for _ in range(2):
            zero = torch.zeros(5, dtype=torch.float64)
            sent = torch.stack([sum((model.lin.weight[r] @ h[j] for j, r in row), start=zero) for row in rows])
            h = model.gru(sent, h)
        both = torch.cat([h, x], dim=1)
        gated = (torch.sigmoid(model.gate(both)) * torch.tanh(model.value(both))).sum(0)
        torch.testing.assert_close(found[k], model.out(gated), rtol=1e-10, atol=1e-10)


def test_a_molecule_is_the_same_alone_and_in_company():
    torch.manual_seed(0)
    model, molecules = GGNN(SIZES, 6, 2).double(), random_molecules(8)
    together = model(batch_of(molecules, model))
    alone = torch.cat([model(batch_of(molecules, model, chosen=[k])) for k in range(8)])
    torch.testing.assert_close(alone, together, rtol=1e-10, atol=1e-10)
