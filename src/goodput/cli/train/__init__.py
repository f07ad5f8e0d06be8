"""Commands of `goodput train`, one file each."""
