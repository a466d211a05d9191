"""Projects with markers, as in the tests' notation; `@step CALL` is a training loop that makes a call in each step."""

from __future__ import annotations

import re

import pytest

from tests.semantics.notation import projects

_STEP = """\
def train(model, loader, optimizer):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        out = model(x)
        loss = out.sum()
        loss.backward()
        optimizer.step()
"""


def programs(text: str) -> pytest.MarkDecorator:
    """The marked lines of projects as a test's parameter `case`; a line of equal signs separates projects."""
    return projects(*map(_expanded, re.split(r"^===+\n", text.lstrip("\n"), flags=re.MULTILINE)))


def _expanded(text: str) -> str:
    def loop(match: re.Match[str]) -> str:
        body = "".join(f"        {part.strip()}\n" for part in match[1].split(";"))
        return _STEP + body

    return re.sub(r"^@step (.*)\n", loop, text, flags=re.MULTILINE)
