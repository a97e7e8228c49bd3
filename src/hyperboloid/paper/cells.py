"""The cells of Tables 4 to 6: a model on a graph for a task in a dimension, and what the paper prints for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from hyperboloid.errors import InputError

from .printed import Printed, printed_tables

Name = TypeVar("Name", str, int)

#: Table 4, link prediction; Table 5, node classification; Table 6, the variants of LGCN and HGCN.
CELL_EXPERIMENTS = ("link", "node", "ablation")
#: All three of them; a run of it measures whatever is missing.
TABLES = "tables"
#: What a run of cells may be called.
CELL_RUNS = (*CELL_EXPERIMENTS, TABLES)
#: The paper's data sets, the quickest to measure first.
DATASETS = ("disease", "usa", "cora", "citeseer", "pubmed", "amazon")
DIMS = (8, 16, 32, 64)
MODELS = ("lgcn", "gcn", "gat", "graphsage", "hgcn", "kgcn", "hat", "deepwalk", "poincare_emb")
#: Table 6 has fewer graphs, other models and one dimension.
ABLATION_DATASETS = ("disease", "usa", "amazon")
ABLATION_MODELS = ("lgcn", "lgcn_no_beta", "lgcn_no_att", "lgcn_no_att_no_centroid", "hgcn", "hgcn_c")
ABLATION_DIM = 64
ALL_MODELS = tuple(dict.fromkeys((*MODELS, *ABLATION_MODELS)))
#: Graphs whose node split came with the data, the same for everyone.
PUBLIC_SPLIT = frozenset({"cora", "citeseer", "pubmed"})


@dataclass(frozen=True)
class Cell:
    """One number of the paper to be measured again.

    Attributes:
        experiment: whose results it belongs to. Table 6's rows of LGCN and HGCN are cells of ``link`` and ``node``.
        dataset: as the paper calls it.
        task: ``link`` or ``node``.
        model: our name of it.
        dim: width of the embeddings.
        paper_mean: what the paper prints, as a fraction of 1.
        paper_std: likewise.
    """

    experiment: str
    dataset: str
    task: str
    model: str
    dim: int
    paper_mean: float
    paper_std: float

    @property
    def graph(self) -> str:
        """Our data set. The paper's Disease has lost its features: see ``graphs/datasets.py``."""
        if self.dataset != "disease":
            return self.dataset
        return "disease_lp" if self.task == "link" else "disease"

    @property
    def comparable(self) -> bool:
        """Whether it was measured on the paper's graph; Disease's nodes are those of a generated epidemic."""
        return self.graph != "disease"

    @property
    def public_split(self) -> bool:
        """Whether its split came with the data, whatever the split's seed."""
        return self.task == "node" and self.dataset in PUBLIC_SPLIT

    def __str__(self) -> str:
        return f"{self.task} {self.dataset} d={self.dim} {self.model}"


def cells(
    experiment: str,
    *,
    datasets: Sequence[str] | None = None,
    dims: Sequence[int] | None = None,
    models: Sequence[str] | None = None,
) -> list[Cell]:
    """The cells of a table, the quickest graphs first.

    Args:
        experiment: one of :data:`CELL_RUNS`; :data:`TABLES` has each cell of the others once.
        datasets: only these; None for all. Likewise ``dims`` and ``models``.

    Raises:
        InputError: a name that the table does not have.
    """
    if experiment not in CELL_RUNS:
        raise InputError(f"There is no table '{experiment}'; choose one of: {', '.join(CELL_RUNS)}.")
    if experiment == TABLES:
        graphs = chosen_names("data set", experiment, datasets, DATASETS)
        widths = chosen_names("dimension", experiment, dims, DIMS)
        names = chosen_names("model", experiment, models, ALL_MODELS)
        asked = [c for c in all_cells() if c.dataset in graphs and c.dim in widths and c.model in names]
        if not asked:
            raise InputError("No table has such a cell: the variants of Table 6 are there for some graphs at d = 64.")
        return sorted(asked, key=lambda cell: DATASETS.index(cell.dataset))
    ablation = experiment == "ablation"
    chosen_datasets = chosen_names("data set", experiment, datasets, ABLATION_DATASETS if ablation else DATASETS)
    chosen_dims = chosen_names("dimension", experiment, dims, (ABLATION_DIM,) if ablation else DIMS)
    chosen_models = chosen_names("model", experiment, models, ABLATION_MODELS if ablation else MODELS)
    return [
        _cell(task, dataset, model, dim)
        for dataset in chosen_datasets
        for task in (("link", "node") if ablation else (experiment,))
        for dim in chosen_dims
        for model in chosen_models
    ]


def all_cells() -> list[Cell]:
    """Every cell of the three tables, once."""
    return list(dict.fromkeys(cell for experiment in CELL_EXPERIMENTS for cell in cells(experiment)))


def _cell(task: str, dataset: str, model: str, dim: int) -> Cell:
    tables = printed_tables()
    if model in MODELS:
        experiment = task
        table = tables["link_prediction" if task == "link" else "node_classification"]
        printed = Printed(*table[dataset][str(dim)][model])
    else:
        experiment = "ablation"
        printed = Printed(*tables["ablation_dim64"][model][f"{dataset}/{task}"])
    mean, std = (round(number / 100, 6) for number in printed)  # 93.6 / 100 is not quite 0.936
    return Cell(experiment, dataset, task, model, dim, mean, std)


def chosen_names(what: str, experiment: str, asked: Sequence[Name] | None, known: Sequence[Name]) -> list[Name]:
    """Those of the known names that are asked for, in their own order.

    Raises:
        InputError: a name that the experiment does not have, or none at all.
    """
    if asked is None:
        return list(known)
    choice = ", ".join(map(str, known))
    if not asked:
        raise InputError(f"Name at least one {what} of '{experiment}': {choice}.")
    for one in asked:
        if one not in known:
            raise InputError(f"There is no {what} '{one}' in '{experiment}'; choose among: {choice}.")
    return [one for one in known if one in asked]
