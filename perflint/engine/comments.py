"""Findings about the comments that silence findings: unused ones, misspelt ones, and those without a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from perflint.config.errors import ConfigurationError, did_you_mean, known_code
from perflint.config.selection import canonical, expand
from perflint.config.settings import Settings
from perflint.engine.active import holds
from perflint.engine.rulebook import known_rules, names
from perflint.findings import Confidence, Edit, Finding, Fix, Heat, Safety, Span
from perflint.rules.base import Rule
from perflint.rules.registry import RuleSet
from perflint.source.suppressions import ALL, UNUSED, Comment, Reach, Selector, Suppressions, block_headers
from perflint.source.text import Source

UNKNOWN = "TPF982"
WITHOUT_REASON = "TPF983"
_MISSPELT = 0.8
"""How much a word is like a name that is written in its place."""
COMMENT_CODES = frozenset({UNUSED, UNKNOWN, WITHOUT_REASON})
"""The codes of findings about comments, which no comment silences."""


def comment_findings(source: Source, suppressions: Suppressions, rules: RuleSet, settings: Settings) -> list[Finding]:
    """The findings about the comments of a file, in which `suppressions` was asked about all findings.

    `rules` are those that are on for the file. Comments about rules that need a trace are not judged: another trace
    may have their findings.
    """
    about = {rule.code: rule for rule in rules.rules if rule.code in COMMENT_CODES}
    if not about or not (suppressions.comments or suppressions.unknown):
        return []
    judged = {rule.code for rule in rules.rules if rule.listens}
    return sorted(
        _Judge(source, suppressions, about, judged, settings).findings(), key=lambda each: (each.span, each.code)
    )


class _Judge:
    def __init__(
        self,
        source: Source,
        suppressions: Suppressions,
        about: dict[str, Rule],
        judged: AbstractSet[str],
        settings: Settings,
    ) -> None:
        self._source = source
        self._suppressions = suppressions
        self._about = about
        self._judged = judged
        self._settings = settings
        self._names = names(settings)
        lines = {each.span.line for each in suppressions.comments if each.reach is Reach.BLOCK}
        self._headers = {line for _, _, line in block_headers(source, lines)}

    def findings(self) -> Iterator[Finding]:
        """All findings of rules that are on."""
        for comment in self._suppressions.comments:
            yield from self._of_comment(comment)
        for unknown in self._suppressions.unknown:
            message = f"`# perflint: {unknown.word}` does not exist"
            help = "write `# perflint: ignore[RULE]`, `ignore-block[RULE]` or `ignore-file[RULE]`"
            yield from self._finding(UNKNOWN, unknown.span, message, help, None)

    def _of_comment(self, comment: Comment) -> Iterator[Finding]:
        if self._settings.require_reasons and not comment.reason:
            help = "write the reason behind the list"
            yield from self._finding(WITHOUT_REASON, comment.span, "the comment does not say why", help, None)
        if comment.reach is Reach.BLOCK and comment.span.line not in self._headers:
            help = "put it on the line of a `def`, `class`, `for`, `while`, `with`, `if` or `try`"
            yield from self._finding(UNKNOWN, comment.span, "no block begins on the line of the comment", help, None)
        elif comment.bare is not None:
            listed = f"[{', '.join(each.text for each in comment.selectors or ())}]"
            written = Fix(f"Write `{listed}`", Safety.SAFE, (Edit(comment.bare, listed),), leaves=(UNUSED, UNKNOWN))
            message = "the rules of a comment must stand in brackets"
            yield from self._finding(UNKNOWN, comment.bare, message, f"write `{listed}`", written)
        elif comment.selectors is None:
            if self._all_are_on() and not self._suppressions.is_used(comment, ALL):
                stray = self._stray(comment)
                fix = None if stray else self._without(comment, ())
                yield from self._finding(UNUSED, comment.span, "the comment silences no finding", stray, fix)
        elif not comment.selectors:
            fix = self._without(comment, ())
            yield from self._finding(UNUSED, comment.span, "the comment names no rule", None, fix)
        else:
            yield from self._of_list(comment, comment.selectors)

    def _of_list(self, comment: Comment, selectors: Sequence[Selector]) -> Iterator[Finding]:
        unknown = {each: self._suggestion(each.text) for each in selectors if not self._codes(each)}
        unused = [each for each in selectors if each not in unknown and self._is_unused(comment, each)]
        # One removal for all, so that two fixes do not change one list.
        misspelt = {each for each, help in unknown.items() if _meant(help)}
        gone = {*unused, *unknown} - misspelt
        fix = self._without(comment, [each for each in selectors if each not in gone]) if gone else None
        stray = self._stray(comment)
        for each in unused:
            message = f"`{each.text}` silences no finding here"
            yield from self._finding(UNUSED, each.span, message, stray, None if stray else fix)
        for each, help in unknown.items():
            meant = _meant(help)
            message = f"no rule has the code or name `{each.text}`"
            yield from self._finding(UNKNOWN, each.span, message, help, _corrected(each, meant) if meant else fix)

    def _suggestion(self, word: str) -> str | None:
        """A help text for a word that names no rule; None if it is like no code and no name."""
        return known_code(word, self._names) or did_you_mean(word, self._names.values(), _MISSPELT)

    def _stray(self, comment: Comment) -> str | None:
        """A help text for a comment that stands above the line that it is probably for; None if it stands elsewhere."""
        text = self._source.lines[comment.span.line - 1]
        above = comment.reach is Reach.LINE and not text[: comment.span.column - 1].strip()
        return (
            "a comment silences findings on its own line: put it at the end of the line that it is for"
            if above
            else None
        )

    def _is_unused(self, comment: Comment, selector: Selector) -> bool:
        codes = self._codes(selector)
        if canonical(selector.text) == ALL:
            return self._all_are_on() and not self._suppressions.is_used(comment, ALL)
        return not self._judged.isdisjoint(codes) and not self._suppressions.is_used(comment, selector.text)

    def _all_are_on(self) -> bool:
        """True if all rules that look at source are on."""
        version = self._settings.torch_version
        rules = known_rules(self._settings)
        return all(rule.code in self._judged for rule in rules if rule.listens and holds(rule, version))

    def _codes(self, selector: Selector) -> frozenset[str]:
        """The codes of the rules that a selector names; empty if there are none."""
        try:
            return expand(selector.text, self._names, "a comment")
        except ConfigurationError:
            return frozenset()

    def _without(self, comment: Comment, kept: Sequence[Selector]) -> Fix:
        """The fix that leaves some words of a list, or removes the whole comment."""
        span = comment.span
        if kept:
            selectors = comment.selectors or ()
            listed = Span(span.line, selectors[0].span.column, span.line, selectors[-1].span.end_column)
            return Fix("Shorten the list", Safety.SAFE, (Edit(listed, ", ".join(each.text for each in kept)),))
        text = self._source.lines[span.line - 1]
        before, after = text[: span.column - 1], text[span.end_column - 1 :]
        if not before.strip() and not after.strip():
            # The comment is all of its line. The last line of a file may have no end.
            whole = Span(span.line, 1, span.line + 1, 1)
            return Fix("Remove the comment", Safety.SAFE, (Edit(whole, ""),))
        start = len(before.rstrip()) + 1 if not after.strip() or before.strip() else span.column
        end = span.end_column if before.strip() else span.end_column + len(after) - len(after.lstrip())
        return Fix("Remove the comment", Safety.SAFE, (Edit(Span(span.line, start, span.line, end), ""),))

    def _finding(self, code: str, span: Span, message: str, help: str | None, fix: Fix | None) -> Iterator[Finding]:
        rule = self._about.get(code)
        if rule is not None:
            yield Finding(
                self._source.path,
                span,
                code,
                rule.name,
                message,
                rule.severity,
                Confidence.HIGH,
                Heat.WARM,
                rule.effect,
                help=help,
                fix=fix,
            )


def _corrected(selector: Selector, code: str) -> Fix:
    """The fix that writes a code as it is meant; then the comment may turn out to be unused."""
    return Fix(f"Write `{code}`", Safety.SAFE, (Edit(selector.span, code),), leaves=(UNUSED,))


def _meant(help: str | None) -> str:
    """The code that a help text suggests; empty if it suggests none."""
    return help.split("`")[1] if help and help.startswith("did you mean `") else ""
