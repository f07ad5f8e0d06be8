"""Reports as one HTML file each: works offline, no request leaves the page."""

from goodput.report.html.compare import comparison_page
from goodput.report.html.training import training_page

__all__ = ["comparison_page", "training_page"]
