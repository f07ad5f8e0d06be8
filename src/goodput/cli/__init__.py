"""The command line: one package per pillar, one file per command, no logic.

Read registry.py first: it lists every command.
"""

from goodput.cli.app import main

__all__ = ["main"]
