"""Stores: the ledger of messages, and the queue of jobs."""
