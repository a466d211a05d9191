"""Traces that someone has written by hand: each command gives a result or an error, and none crashes."""

from __future__ import annotations

import gzip
import json
import random
from typing import Any

import pytest

from tests.cli.command import ROOT, Command

NUMBERS = (0, -1, 1, 2**62, -(2**62))
TIMES = (0.0, -1.0, 1e18, 9e99, -9e99, 5e-324)
TEXTS = (
    "",
    "a" * 5000,
    "<script>`@x` ::error::\u202e\x1b[31m",
    "../../../../etc/passwd",
    "/etc/passwd",
    "x\r\n::error::y",
)
KEPT = ("record", "format", "version", "records")


def forged(value: Any, dice: random.Random) -> Any:
    """A record with other values of the same types."""
    if isinstance(value, dict):
        return {key: each if key in KEPT else forged(each, dice) for key, each in value.items()}
    if isinstance(value, list):
        return [forged(each, dice) for each in value] * dice.choice([1] * 40 + [0, 2, 50])
    if value is None or isinstance(value, bool) or dice.random() > 0.12:
        return value
    return dice.choice(NUMBERS if isinstance(value, int) else TIMES if isinstance(value, float) else TEXTS)


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 100), marks=pytest.mark.slow)], ids=len)
def test_no_command_crashes(perflint: Command, seeds: range) -> None:
    recorded = gzip.decompress((ROOT / "docs" / "examples" / "tracing" / "slow.jsonl.gz").read_bytes())
    header, *records, _ = map(json.loads, recorded.splitlines())
    perflint.write("tracing/train.py", (ROOT / "docs" / "examples" / "train.py").read_bytes())
    for seed in seeds:
        dice = random.Random(seed)
        made = [
            forged(header, dice),
            *(forged(each, dice) for each in records),
            {"record": "end", "records": len(records)},
        ]
        perflint.write("t.jsonl.gz", gzip.compress("".join(f"{json.dumps(each)}\n" for each in made).encode(), 1))
        for command in (
            ["report", "t.jsonl.gz", "--output=report.html"],
            ["report", "t.jsonl.gz", "--format=text", "--output=-"],
            ["report", "t.jsonl.gz", "--format=chrome", "--output=chrome.json"],
            ["compare", "t.jsonl.gz", "t.jsonl.gz"],
            ["check", "tracing", "--no-cache", "--trace=t.jsonl.gz"],
            ["fix", "tracing", "--unsafe-fixes", "--trace=t.jsonl.gz"],
            ["tune", "--dry-run", "--trace=t.jsonl.gz"],
        ):
            ran = perflint(*command)
            assert "crashed" not in ran.err, (seed, command, ran.err)
            assert not [line for line in (ran.out + ran.err).splitlines() if line.lstrip().startswith("::")]
