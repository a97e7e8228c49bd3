"""The ``hyperboloid`` command. Nothing heavy is imported until a command runs."""

from __future__ import annotations

import atexit
import signal
import sys
from typing import TYPE_CHECKING, Any

from hyperboloid.errors import InputError, TrainingError, lacks_memory
from hyperboloid.signals import ignored
from hyperboloid.version import __version__

from .starting import AGAIN, starting

if TYPE_CHECKING:
    from typer.core import TyperGroup


def main() -> None:
    """Run the command; 0 done, 1 failed, 2 bad input, 130 interrupted."""
    try:
        with starting():
            from hyperboloid.process import keep_memory, wait_briefly

            wait_briefly()  # no command has imported torch yet
            keep_memory()
            program = _program()
        program()
    except InputError as error:
        _say(error)
        sys.exit(2)
    except TrainingError as error:
        _say(error)
        sys.exit(1)
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        _say(f"There is not enough memory: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        with ignored(signal.SIGINT):
            print(f"Interrupted; {AGAIN}.", file=sys.stderr)
        sys.exit(130)
    finally:
        # Ctrl-C has nothing left to stop. Registered last, this comes first, before libraries tidy up.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def _program() -> TyperGroup:
    """All commands. They are imported here, and not above, where nothing could be done about Ctrl-C."""
    import typer
    from typer.core import TyperGroup
    from typer.main import get_group

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
    from .options import interruptible

    class Program(TyperGroup):
        """Ctrl-C ends commands with a sentence that have none of their own for it."""

        def make_context(self, *args: Any, **options: Any) -> Any:
            with starting():
                return super().make_context(*args, **options)

        def invoke(self, ctx: Any) -> Any:
            with interruptible(AGAIN):
                return super().invoke(ctx)

    app = typer.Typer(
        name="hyperboloid",
        cls=Program,
        help="Hyperbolic graph neural networks: train, evaluate and predict from the command line.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    commands = (
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
    for module in commands:
        app.command(name=module.__name__.rpartition(".")[2])(module.command)
    app.add_typer(paper.app, name="paper")

    def show_version(show: bool) -> None:
        if show:
            typer.echo(f"hyperboloid {__version__}")
            raise typer.Exit

    @app.callback()
    def options(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        """Options of the whole program."""

    return get_group(app)


def _say(error: Exception | str) -> None:
    """One line, whatever the message was made of."""
    print("Error:", " ".join(str(error).split()), file=sys.stderr)
