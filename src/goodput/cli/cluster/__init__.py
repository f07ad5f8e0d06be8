"""Commands of `goodput cluster`, one file each."""
