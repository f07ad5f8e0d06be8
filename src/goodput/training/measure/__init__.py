"""Measuring: recorder and readers produce events, the ledger turns them into numbers."""
