"""Runs a program with and without fixes, and says which of them are worth it."""
