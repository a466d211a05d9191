"""The result of `perflint tune` as a page: the gain, each change with its times and proof, and the patch."""

from __future__ import annotations

from collections.abc import Sequence

from perflint.output.report.markup import Content, Markup, breakable, join, tag, text
from perflint.output.report.parts import Column, Names, Section, note, scrolling, section, table
from perflint.output.report.shell import whole_page
from perflint.output.tune import clock, headline, limits, spread, verdict
from perflint.tune.tuning import Outcome, Trial

_NAMES = Names("")
_COLUMNS = (
    Column("change"),
    Column("gain", True),
    Column("ms/step before", True),
    Column("ms/step after", True),
    Column("result"),
)
_PATCH = 200_000
"""Characters of the patch that are shown."""


def tuning_page(outcome: Outcome, command: Sequence[str], patch: str, version: str, stopped: str = "") -> str:
    """The page; `patch` is the text of the patch, `stopped` the reason why the search did not end."""
    notes = [note(each) for each in (*limits(outcome), *clock(outcome))]
    if stopped:
        notes.insert(0, note(f"The search was stopped: {stopped}. This is the best so far."))
    sections = [section(_NAMES, "result", "The result", tag("p", headline(outcome), class_="headline"), notes)]
    for name, title, trials in (
        ("kept", "Kept", outcome.kept),
        ("dropped", "Tried and not kept", [each for each in outcome.trials if not each.kept]),
    ):
        if trials:
            sections.append(
                section(_NAMES, name, title, table(title, _COLUMNS, [*map(_row, trials)], is_caption_hidden=True))
            )
    if outcome.refused:
        rows: list[Sequence[Content]] = [[name, reason] for name, reason in outcome.refused.items()]
        columns = (Column("change"), Column("reason"))
        sections.append(
            section(_NAMES, "refused", "Not tried", table("Not tried", columns, rows, is_caption_hidden=True))
        )
    if patch:
        sections.append(_patch(patch))
    title = " ".join(command)
    return whole_page(f"{title} – perflint tune", _masthead(title, outcome), sections, version)


def _masthead(title: str, outcome: Outcome) -> Markup:
    seen = outcome.original[0].seen if outcome.original else None
    facts = [("GPU", (seen and seen.device) or "none"), ("torch", seen.torch if seen is not None else "unknown")]
    return join(
        tag("p", "perflint tune", class_="brand"),
        tag("h1", tag("code", breakable(title))),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
    )


def _row(trial: Trial) -> list[Content]:
    gain = f"{trial.gain:.2f} ×" if trial.gain is not None else "fails"
    name = join(tag("b", trial.change.name), tag("br"), trial.change.title)
    return [name, gain, spread(trial.before), spread(trial.after), verdict(trial)]


def _patch(patch: str) -> Section:
    content = scrolling(tag("pre", text(patch, _PATCH)), "The patch")
    return section(_NAMES, "patch", "The patch", tag("p", "Apply it with ", tag("code", "git apply"), "."), content)
