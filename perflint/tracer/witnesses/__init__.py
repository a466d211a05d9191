"""Witnesses: each module watches one kind of behaviour and records its outcomes for the verdicts on some rules.

The modules are found by listing this package (`watching.Witnesses`). A witness records `Observation`s; the judges
(`tracer/judges`) hold findings against them.
"""
