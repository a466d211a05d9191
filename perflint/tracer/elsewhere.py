"""The rules that report a construction, a setting or code of a worker, whose cost is in the steps.

The line of such a finding does not show how often it costs time.
"""

from __future__ import annotations

COSTS_ELSEWHERE = frozenset(
    "TPF301 TPF308 TPF351 TPF352 TPF358 TPF374 TPF401 TPF402 TPF405 TPF406 TPF407 TPF601 TPF605 TPF606 TPF607 TPF608 "
    "TPF921 TPF922 TPF941 TPF942 TPF961".split()
)
