"""Findings that only a trace has. Each module finds those of one rule of `rules/traced` in the facts about a file."""
