"""The verdicts of runs on the findings of each rule, for the pages of the rules.

`simulated/scores.json` has the counts of the packages that were recorded in the simulation; `score_rules.py --json`
writes it. `../tracer/results/public-h200.json` has the verdicts on the findings of the default profile in public
programs that ran on a GPU; `../tracer/public/run.py --json` writes it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SIMULATED = Path(__file__).parent / "simulated" / "scores.json"
PUBLIC = Path(__file__).parents[1] / "tracer" / "results" / "public-h200.json"
_RULINGS = ("confirmed", "confirmed, no cost", "refuted", "undecided")
_WORDS = ("confirmed", "confirmed without a cost", "refuted", "undecided")


def simulated(document: Mapping[str, Any]) -> dict[str, str]:
    """The sentence about each rule in the scores of the simulation, by its code."""
    tests = f"the tests of {len(document['packages'])} packages"
    return {code: said for code, rule in document["rules"].items() if (said := _of_tests(tests, rule))}


def _of_tests(tests: str, rule: Mapping[str, Any]) -> str:
    ran, happened = rule["ran"], rule["happened"]
    if not ran and not happened:
        return ""
    claims = f"{_count(ran, 'finding')} ran in {tests}" + (f": {_rulings(rule['rulings'])}" if ran else "")
    places = f"; a trace confirms {_count(happened, 'place')}, {rule['found']} with a finding" if happened else ""
    return f"Simulated: {claims}{places}."


def public(document: Mapping[str, Any]) -> dict[str, str]:
    """The sentence about each rule in the verdicts of public programs, by its code."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for finding in document["findings"]:
        if finding["ruling"] in _RULINGS:
            counts[finding["code"]][finding["ruling"]] += 1
    gpu, programs = document["gpus"][0], f"{_count(len(document['programs']), 'public program')}"
    return {
        code: f"On an {gpu}: {_count(rulings.total(), 'finding')} ran in {programs}: {_rulings(rulings)}."
        for code, rulings in counts.items()
    }


def _rulings(rulings: Mapping[str, int]) -> str:
    """The number of findings with each ruling: `3 confirmed, 1 refuted`."""
    named = zip(_RULINGS, _WORDS, strict=True)
    return ", ".join(f"{count} {word}" for ruling, word in named if (count := rulings.get(ruling, 0)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def sentences() -> dict[str, list[str]]:
    """The sentences about each rule from the results that are checked in, by its code."""
    said: dict[str, list[str]] = defaultdict(list)
    for path, of_rules in ((SIMULATED, simulated), (PUBLIC, public)):
        for code, sentence in of_rules(json.loads(path.read_text(encoding="utf-8"))).items():
            said[code].append(sentence)
    return dict(said)
