"""Measurement of clusters: `fleet` accounts for tables of jobs."""
