"""Callbacks for trainers and helpers for JAX, one file per library; each imports its library.

`from goodput.training.measure.integrations.huggingface import GoodputCallback`
"""
