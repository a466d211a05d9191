"""`python -m tests.forms`: the differences of rules in forms, or the page with the tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tests.forms.catalogue import FORMS
from tests.forms.program import Form
from tests.forms.table import PAGE, Kind, column, differences, page, title
from tests.rules.harness import source_cases


def main() -> None:
    """Print differences, or write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.forms", description="write the examples of rules in other forms"
    )
    parser.add_argument("--write", action="store_true", help="write docs/forms.md; takes a minute")
    parser.add_argument("--rule", action="append", help="only this rule, by its code")
    parser.add_argument("--form", action="append", help="only this form, by its name")
    parser.add_argument("--kind", action="append", choices=[kind.value for kind in Kind], help="only these examples")
    parser.add_argument("--short", action="store_true", help="only the findings, without the texts of the forms")
    asked = parser.parse_args()
    kinds = [Kind(each) for each in asked.kind or ("pages", "fixtures")]
    if asked.write:
        table = {(code, title(form)): entry for form in FORMS for code, entry in column(form, source_cases()).items()}
        PAGE.write_text(page(table), encoding="utf-8", newline="\n")
        return
    forms = [form for form in FORMS if not asked.form or title(form) in {each.replace("_", " ") for each in asked.form}]
    for kind in kinds:
        for line in _shown(kind, asked.rule, forms, asked.short):
            print(line)


def _shown(kind: Kind, rules: list[str] | None, forms: list[Form], is_short: bool) -> Iterator[str]:
    for case in source_cases():
        for form in forms if not rules or case.rule.code in rules else ():
            for example, texts, difference in differences(kind, case, form):
                if difference.held:
                    continue
                yield f"===== {case} ({case.rule.code}): {title(form)}"
                yield from (
                    f"lost: {found}: {example.text.splitlines()[found.line - 1].strip()}" for found in difference.lost
                )
                yield from (f"new: {found}" for found in difference.new)
                for name, text in () if is_short else texts.items():
                    yield f"----- {name}.py"
                    yield from (f"{number:3} {line}" for number, line in enumerate(text.splitlines(), 1))


if __name__ == "__main__":
    main()
