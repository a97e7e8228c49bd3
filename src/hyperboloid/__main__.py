"""``python -m hyperboloid``."""

from hyperboloid.cli.main import main

main()
