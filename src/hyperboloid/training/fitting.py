"""Training from the outside: a graph or molecules in, a run folder out."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from hyperboloid.errors import InputError
from hyperboloid.nn.registry import check_task, default_model

from .checkpoint import write_json
from .config import Config, read_config, use_device
from .data import Data, load_data, store_data
from .every_task import get_any_task
from .experiment import Experiment, make_task, run_folder, summarize
from .loop import start_training
from .runner import Progress, train_run
from .settings import default_settings
from .tasks import BaseTask


def fit(
    dataset: Any,
    *,
    task: str = "link",
    model: str | None = None,
    dim: int | None = None,
    seeds: int = 1,
    seed: int = 0,
    split: int | Sequence[int] = 0,
    features: str | Path | None = None,
    labels: str | Path | None = None,
    weight: str | None = None,
    smiles: str | None = None,
    target: str | Sequence[str] | None = None,
    data_dir: str | Path | None = None,
    device: str | torch.device = "cpu",
    dtype: str = "float32",
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    notice: Callable[[str], None] = warnings.warn,
    **settings: Any,
) -> Experiment:
    """Train a model on a graph, or on many, once for each split and seed, and keep everything in a run folder.

    Args:
        dataset: name of a data set (``cora``), path of a graph file, or a PyG ``Data``, networkx graph, scipy sparse
            matrix or :class:`Graph`. For task ``graph``: ``zinc``, path of a table of SMILES, or a PyG data set.
        task: ``link``, ``node`` or ``graph``.
        model: name of the model; by default the paper's own, ``lgcn``, or ``hgnn_l`` for task ``graph``.
        dim: width of the embeddings; by default what suits the data set.
        seeds: number of initialisations, ``seed``, ``seed + 1``, ….
        seed: the first of them.
        split: seed of the split, or several; of splits that came with the data, their numbers.
        features: table of node features, for a graph of the user's.
        labels: table of node labels, likewise.
        weight: column of edge weights, likewise.
        smiles: column of SMILES, for molecules of the user's; the one called smiles by default.
        target: what to predict for molecules, a name or several; logp, qed and sas need no column.
        data_dir: where the named data sets lie.
        device: ``cpu`` or ``cuda``.
        dtype: ``float32`` or ``float64``.
        out: the run folder; by default a new one below ``runs/``.
        resume: go on with the unfinished runs of ``out``.
        progress: is told how it goes.
        notice: is told what of the data is left out, and why.
        **settings: hyper-parameters that differ from the defaults, see :class:`Settings`.

    Raises:
        InputError: something given is wrong; nothing was written.
        TrainingError: a number is not finite, or the disk is full.
        KeyboardInterrupt: with the run folder as its argument, which ``resume`` takes up.
    """
    get_any_task(task)
    model = model or default_model(task)
    check_task(model, task)
    data = load_data(
        task, dataset, data_dir=data_dir, smiles=smiles, target=target, masks=settings.get("masks"),
        features=features, labels=labels, weight=weight,
    )  # fmt: skip
    config = Config(
        dataset=dataset if isinstance(dataset, str) else str(dataset) if isinstance(dataset, Path) else data.name,
        checksum=data.checksum,
        task=task,
        model=model,
        settings=default_settings(model, task, data.name, dim, **settings),
        splits=[_whole("split", number) for number in _splits(split)],
        seeds=[_whole("seed", seed) + k for k in range(_whole("seeds", seeds))],
        dtype=dtype,
        device=str(device),
    )
    use_device(config.device)

    def task_for(split: int) -> BaseTask:
        return make_task(config, data, split, config.device)

    # everything that can be wrong with the input shows here, before anything is written
    first = task_for(config.splits[0])
    # of the other splits the one with the largest number, which data with numbered splits may not have
    if len(config.splits) > 1 and task_for(max(config.splits[1:])).split_name == first.split_name:
        raise InputError(f"'{data.name}' comes with one fixed split: give one --split, and --seeds for more runs.")
    start_training(model, first, config.settings, config.seeds[0])
    if left_out := first.left_out:
        notice(left_out)
    try:
        folder = _open_folder(out, config, resume, Path(data.name).stem)
    except OSError as error:
        raise InputError(f"Cannot make the run folder {out or 'below runs/'}: {error.strerror}.") from error
    try:
        _train_all(folder, config, data, task_for, first, progress)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(str(folder)) from interrupt
    return Experiment(folder)


def _splits(given: Any) -> Iterable[Any]:
    """One, or several in whatever holds them; a tensor without axes is one."""
    return given if isinstance(given, Iterable) and getattr(given, "ndim", None) != 0 else [given]


def _whole(name: str, given: Any) -> int:
    """A whole number of Python's, numpy's or torch's."""
    if not isinstance(given, bool):
        with suppress(TypeError):
            return operator.index(given)
    raise InputError(f"{name} must be a whole number, not {given!r}.")


def _train_all(
    folder: Path,
    config: Config,
    data: Data,
    task_for: Callable[[int], BaseTask],
    first: BaseTask,
    progress: Progress | None,
) -> None:
    """Fill a run folder: one run for each split and seed, and their summary."""
    if not (folder / "config.json").exists():
        write_json(folder / "config.json", config.to_json())
    store_data(folder, data)

    summaries = []
    for split_seed in config.splits:
        current = first if split_seed == config.splits[0] else task_for(split_seed)
        for run_seed in config.seeds:
            one = config.only(split_seed, run_seed)
            where = run_folder(folder, config, split_seed, run_seed)
            summaries.append(train_run(where, one, current, progress))
    write_json(folder / "summary.json", summarize(config, folder, summaries))


def _open_folder(out: str | Path | None, config: Config, resume: bool, name: str) -> Path:
    """Make the run folder, or check that the one there holds this very experiment."""
    if out is None:
        if resume:
            raise InputError("Resuming needs the run folder: give it by --out.")
        stem = f"{name}-{config.task}-{config.model}-d{config.settings.dim}"
        names = (Path("runs") / (stem if n == 1 else f"{stem}-{n}") for n in itertools.count(1))
        folder = next(path for path in names if not path.exists())
    else:
        folder = Path(out)
        if folder.exists() and not resume:
            raise InputError(f"{folder} exists already: choose another --out, or go on with it by --resume.")
        if folder.exists() and (folder / "config.json").exists():
            _check_same(folder, config)
        elif folder.exists() and (not folder.is_dir() or any(p.suffix != ".partial" for p in folder.iterdir())):
            raise InputError(f"{folder} is not a run folder: choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_same(folder: Path, config: Config) -> None:
    """Refuse a run folder of another experiment, naming what differs."""

    def flat(c: Config) -> dict[str, Any]:
        return {key: value for key, value in vars(c).items() if key != "settings"} | vars(c.settings)

    there = flat(read_config(folder))
    for key, value in flat(config).items():
        if there[key] != value:
            raise InputError(
                f"{folder} holds another experiment: its {key} is {there[key]}, not {value}; choose another --out."
            )
