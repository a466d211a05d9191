"""Calls across files: how often they make a line run, and the values that they pass."""
