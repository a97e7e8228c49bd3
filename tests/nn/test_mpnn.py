"""MPNN against PyG's own NNConv, which computes a matrix for every edge."""

import torch
from molecules import MOLECULES, batch_of, neighbours, random_molecules
from torch_geometric.nn import NNConv

from hyperboloid.nn.graph_model import GraphSizes
from hyperboloid.nn.mpnn import MPNN

SIZES = GraphSizes(kinds=3, features=0, relations=3, targets=2)


def edges_of(molecules):
    """Edge index and one-hot kinds of molecules side by side, as PyG batches them."""
    first, source, target, kinds = 0, [], [], []
    for molecule in molecules:
        for i, row in enumerate(neighbours(molecule, self_loops=False, virtual_node=False)):
            for j, kind in row:
                source.append(first + j)
                target.append(first + i)
                kinds.append(kind)
        first += len(molecule[0])
    return torch.tensor([source, target]), torch.eye(3, dtype=torch.float64)[torch.tensor(kinds)]


def test_messages_are_those_of_nnconv():
    torch.manual_seed(0)
    model = MPNN(SIZES, 4, 3).double()
    conv = NNConv(4, 4, model.edge_network, aggr="add", root_weight=False, bias=False)
    edge_index, edge_attr = edges_of(MOLECULES)
    batch = batch_of(network=model)
    h = model.embedding(batch)
    for _ in range(3):
        h = model.gru(conv(h, edge_index, edge_attr), h)
    expected = model.out(model.read(h, batch.graph))
    torch.testing.assert_close(model(batch), expected, rtol=1e-10, atol=1e-10)


def test_a_molecule_is_the_same_alone_and_in_company():
    torch.manual_seed(0)
    model, molecules = MPNN(SIZES, 6, 2).double(), random_molecules(8)
    together = model(batch_of(molecules, model))
    for k in range(8):
        alone = model(batch_of(molecules, model, chosen=[k]))[0]
        torch.testing.assert_close(alone, together[k], rtol=1e-10, atol=1e-10)
