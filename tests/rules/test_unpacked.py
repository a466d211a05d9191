"""Arguments out of dicts that `**` unpacks, by TPF715."""

from __future__ import annotations

import pytest

from perflint.rules.compile.debug_backend import DebugBackend
from tests.rules.harness import lint

START = "import torch\n\n\ndef build(model, extra, names):\n"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ('    options = {"backend": "eager"}\n    return torch.compile(model, **options)\n', 1),
        ('    options = dict(backend="eager")\n    return torch.compile(model, **{**options, "dynamic": True})\n', 1),
        ('    options = {**extra, "backend": "eager"}\n    return torch.compile(model, **options)\n', 1),
        ('    options = {"backend": "inductor"}\n    return torch.compile(model, **options)\n', 0),
        (
            '    options = {"backend": "eager"}\n    options["backend"] = names\n    torch.compile(model, **options)\n',
            0,
        ),
        ("    return torch.compile(model, **extra)\n", 0),
    ],
)
def test_arguments(body: str, count: int) -> None:
    assert len(lint(START + body, [DebugBackend], "pedantic")) == count


def test_dicts_of_themselves_come_to_an_end() -> None:
    body = "    a, b = {}, {}  # no backend\n    for name in names:\n        a = {**b}\n        b = {**a, name: 1}\n"
    assert not lint(START + body + "    return torch.compile(model, **a)\n", [DebugBackend], "pedantic")
