"""Fills templates, fixes what comes of it and runs it before and after: `python -m tests.fixes.matrix.running OUT`.

It is a process of its own, because a simulated GPU lasts until its process ends. OUT becomes a JSON object: under
"verdicts" the `Verdict` of each template, under "overlooked" the `CHANGES` that the comparison did not see. `--whole`
takes many more combinations; `--only TEXT` the templates with TEXT in their names; `--real` the GPU of the machine
instead of a simulated one.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflint.findings import Finding, Safety
from perflint.fixes.apply import apply_fixes
from perflint.rules.base import Rule
from perflint.rules.registry import all_rules
from tests.fixes.matrix.covering import covering
from tests.fixes.matrix.templates import CHANGES, TEMPLATES, Template, parameters
from tests.rules.harness import lint

if TYPE_CHECKING:
    from tests.fixes.matrix.observing import Seen

PREFIX = "case_"


@dataclass(frozen=True, slots=True)
class Effort:
    """How many random combinations there are beside those that cover each alternative once."""

    texts: int
    runs: int


QUICK, WHOLE = Effort(12, 0), Effort(500, 12)


@dataclass(slots=True)
class Verdict:
    """What came of a template."""

    texts: int = 0
    fixed: int = 0
    """Texts that the safe fixes changed."""
    runs: int = 0
    finished: int = 0
    """Runs that raised no error before."""
    wrong: list[str] = field(default_factory=list)


def source(template: Template, effort: Effort, lead: str = "") -> str:
    """A file with a function for each combination of the holes' alternatives; `lead` is written above each."""
    rows = covering(template.holes, effort.texts * template.weight, template.name)
    bodies = map(template.filled, rows)
    return f"import torch\n{template.header}\n" + "".join(
        f"\n{lead}{written(f'{PREFIX}{number}', body)}\n" for number, body in enumerate(bodies)
    )


def written(name: str, body: str) -> str:
    """A function with a body and the parameters that this uses."""
    parts = [f"{parameter}: {kind}" if kind else parameter for parameter, kind in parameters(body)]
    return f"def {name}({', '.join(parts)}):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def fixed(text: str, rule: type[Rule]) -> str:
    """The text after the safe fixes of a rule."""

    def relint(now: str) -> list[Finding]:
        return lint(now, [rule], "audit")

    return apply_fixes(text, relint(text), relint, (Safety.SAFE,)).text


def functions(text: str) -> dict[str, str]:
    """The functions of a text, each as its own text."""
    return {
        node.name: ast.unparse(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(PREFIX)
    }


def judged(template: Template, effort: Effort) -> Verdict:
    """True if the safe fixes of a template's texts keep their meaning."""
    text = source(template, effort)
    after = fixed(text, rule_of(template))
    was, now = functions(text), functions(after)
    verdict = Verdict(len(was))
    first, second = _namespace(text), _namespace(after)
    for name in was:
        if was[name] == now[name]:
            continue
        verdict.fixed += 1
        for wrong in _compared(was[name], first[name], second[name], f"{template.name} {name}", effort, verdict):
            verdict.wrong.append(f"{was[name]}\n=>\n{now[name]}\n{wrong}")
    return verdict


def told_apart(change: tuple[str, str]) -> bool:
    """True if the comparison sees that two bodies do not mean the same."""
    first, second = (_namespace(f"import torch\n{written('f', body)}")["f"] for body in change)
    return bool(_compared(change[0], first, second, change[0], Effort(0, 60), Verdict()))


def _compared(
    text: str,
    first: Callable[..., Any],
    second: Callable[..., Any],
    seed: str,
    effort: Effort,
    verdict: Verdict,
) -> list[str]:
    """What differs between two functions, over a sample of operands and contexts; `text` uses all parameters."""
    from tests.fixes.matrix import observing, operands

    names = [parameter for parameter, _ in parameters(text)]
    axes: dict[str, Sequence[str]] = {"context": tuple(operands.CONTEXTS), "writes": ("", "yes")}
    for parameter in names:
        axes |= operands.axes(parameter)
    wrong: list[str] = []
    for row in covering(axes, effort.runs, seed):

        def seen(function: Callable[..., Any], row: dict[str, str] = row) -> Seen:
            given = {parameter: operands.operand(parameter, row) for parameter in names}
            return observing.observe(function, given, row["context"], bool(row["writes"]))

        before = seen(first)
        verdict.runs += 1
        if before["error"] is not None:
            # What raises now has no meaning to keep.
            continue
        verdict.finished += 1
        after = seen(second)
        differ = sorted(key for key in before.keys() | after.keys() if before.get(key, ...) != after.get(key, ...))
        if differ:
            lines = [f"  {key}: {str(before.get(key))[:150]} became {str(after.get(key))[:150]}" for key in differ[:4]]
            wrong.append("\n".join([f"with {row}:", *lines]))
    return wrong


def _namespace(text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "matrix"}
    exec(compile(text, "<matrix>", "exec"), namespace)
    return namespace


def rule_of(template: Template) -> type[Rule]:
    """The rule that a template is for."""
    return next(type(rule) for rule in all_rules() if rule.code == template.code)


def main() -> None:
    """Write the verdicts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target", type=Path)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if not arguments.real:
        # A GPU that is there would do what is to be simulated.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch  # noqa: F401

    if not arguments.real:
        from perflint.tracer import simulation

        simulation.start(lambda what, how: None)
    effort = WHOLE if arguments.whole else QUICK
    chosen = [template for template in TEMPLATES if arguments.only in template.name]
    verdicts = {template.name: asdict(judged(template, effort)) for template in chosen}
    overlooked = [] if arguments.only else ["\n=>\n".join(change) for change in CHANGES if not told_apart(change)]
    told = {"verdicts": verdicts, "overlooked": overlooked}
    arguments.target.write_text(json.dumps(told, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
