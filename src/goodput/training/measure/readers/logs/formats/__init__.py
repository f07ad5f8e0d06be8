"""One file per kind of log. A new one needs its file, its test and its line in ../registry.py."""
