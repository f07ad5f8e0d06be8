"""Reports as terminal text (rich): plain without colour, ASCII where the encoding needs it."""

from goodput.report.terminal.screen import ASCII, UNICODE, Screen, detect_screen
from goodput.report.terminal.training import render_training
from goodput.report.terminal.waterfall import waterfall_lines

__all__ = ["ASCII", "UNICODE", "Screen", "detect_screen", "render_training", "waterfall_lines"]
