"""Judges: each module holds the findings of some rules against the observations of a trace.

The modules are found by listing this package (`bench.judge_of`). Each has `JUDGES`, by the code of the rule. It
may have `WAITS_ELSEWHERE`, the rules whose findings are at the cause of a wait that happens at another place.
`undecided.toml` has the reasons for rules that a run did not decide.
"""
