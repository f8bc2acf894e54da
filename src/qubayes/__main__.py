"""`python -m qubayes`: the command line."""

from .cli import main

main()
