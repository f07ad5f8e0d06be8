"""`python -m goodput` is `goodput`."""

from goodput.cli import main

main()
