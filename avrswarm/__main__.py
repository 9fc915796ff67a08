"""``python -m avrswarm`` is the ``avrswarm`` command."""

from avrswarm.cli import main

main()
