"""The ``hyperboloid`` command. Nothing heavy is imported until a command runs."""

from __future__ import annotations

import sys

import typer

from hyperboloid.errors import InputError, TrainingError, lacks_memory
from hyperboloid.process import keep_memory, wait_briefly
from hyperboloid.version import __version__

from . import (
    advise,
    attention,
    bench,
    datasets,
    distortion,
    evaluate,
    hyperbolicity,
    paper,
    plot,
    predict,
    report,
    sweep,
    train,
)

app = typer.Typer(
    name="hyperboloid",
    help="Hyperbolic graph neural networks: train, evaluate and predict from the command line.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = (
    train,
    sweep,
    advise,
    evaluate,
    predict,
    report,
    plot,
    attention,
    distortion,
    hyperbolicity,
    datasets,
    bench,
)
for module in COMMANDS:
    app.command(name=module.__name__.rpartition(".")[2])(module.command)
app.add_typer(paper.app, name="paper")


def _version(show: bool) -> None:
    if show:
        typer.echo(f"hyperboloid {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Options of the whole program."""


def main() -> None:
    """Run the command; 0 done, 1 failed, 2 bad input, 130 interrupted."""
    wait_briefly()  # no command has imported torch yet
    keep_memory()
    try:
        app(standalone_mode=True)
    except InputError as error:
        _say(error)
        sys.exit(2)
    except (TrainingError, OSError) as error:
        _say(error)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        _say(f"There is not enough memory: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _say(error: Exception | str) -> None:
    """One line, whatever the message was made of."""
    print("Error:", " ".join(str(error).split()), file=sys.stderr)
