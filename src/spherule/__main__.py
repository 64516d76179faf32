"""`python -m spherule` is `spherule`."""

from spherule.cli import main

main()
