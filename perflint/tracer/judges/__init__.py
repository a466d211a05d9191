"""Judges: each module holds the findings of some rules against the observations of a trace.

The modules are found by listing this package (`bench.judge_of`). Each has `JUDGES`, by the code of the rule.
"""
