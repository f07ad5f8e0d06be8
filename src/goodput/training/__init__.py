"""Training: measure a job's goodput, model what would change it, raise it."""
