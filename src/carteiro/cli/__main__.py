"""``python -m carteiro.cli``."""

from carteiro.cli import main

main()
