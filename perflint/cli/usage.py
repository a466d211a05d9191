"""Faults in the usage, in one line and with a way out."""

from __future__ import annotations

import importlib
import re
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import NoReturn, TypeVar

from perflint.config.errors import did_you_mean
from perflint.semantics.facts.tables import table

_MISSPELT = 0.75
"""How much an option is like the one that is meant."""
_FEW = 3


_Parser = TypeVar("_Parser", bound=ArgumentParser)


class Parser(ArgumentParser):
    """An argument parser whose errors are a line and a help line, as all errors of perflint are."""

    def format_help(self) -> str:
        """The usage and what the options do."""
        return super(Parser, described(self)).format_help()

    def error(self, message: str) -> NoReturn:
        """Print the message with a hint and exit with status 2."""
        from perflint.output.terminal import Style, wants_colours
        from perflint.output.writer import message_text

        sys.stdout.flush()
        style = Style(wants_colours("auto", sys.stderr))
        sys.stderr.write(message_text("error", message, self._hint(message) or f"`{self.prog} --help`", style))
        sys.exit(2)

    def _hint(self, message: str) -> str | None:
        unknown = re.match(r"unrecognized arguments: (\S+)", message)
        if unknown is not None and self.prog == "perflint rules" and unknown[1][:1] != "-":
            return f"`perflint rule {unknown[1]}`"
        if unknown is None:
            chosen = re.match(r"argument ([^ :/]+)[^:]*: invalid choice: '([^']*)'", message)
            return self._choice(chosen[1], chosen[2]) if chosen is not None else None
        option = unknown[1].partition("=")[0]
        known = [name for action in self._actions for name in action.option_strings]
        return (
            habits("options").get(option)
            or _other_verb(option)
            or _abbreviated(option, known)
            or did_you_mean(option, known, _MISSPELT)
        )

    def _choice(self, name: str, word: str) -> str | None:
        """A help text for a value that an option does not take."""
        chosen = next(action for action in self._actions if name in (*action.option_strings, action.dest))
        return (name == "--output-format" and habits("formats").get(word)) or did_you_mean(
            word, map(str, chosen.choices or ())
        )


def habits(kind: str) -> dict[str, str]:
    """The options, formats or commands that users of other linters try, with the way to the same end here."""
    found: dict[str, str] = table(Path(__file__).with_name("habits.toml"))[kind]
    return found


def described(parser: _Parser) -> _Parser:
    """A parser whose options have their texts: those of `help.toml`, which nothing but help needs."""
    texts = table(Path(__file__).with_name("help.toml"))
    for action in parser._actions:
        if action.help is None:
            action.help = texts.get(max(action.option_strings, key=len, default=action.dest))
    return parser


def _abbreviated(option: str, known: list[str]) -> str | None:
    """A help text for the beginning of a few long options; None for other words."""
    meant = [name for name in known if name.startswith(option)] if re.match(r"--\w", option) else []
    return f"did you mean {' or '.join(f'`{name}`' for name in meant)}?" if 0 < len(meant) <= _FEW else None


def _other_verb(option: str) -> str | None:
    """A help text for an option of another verb; None if neither `check` nor `fix` takes it."""
    if not option.startswith("--"):
        return None
    for verb in ("check", "fix"):
        parser = ArgumentParser(verb)
        importlib.import_module(f"perflint.cli.{verb}").add_arguments(parser)
        if any(option in action.option_strings for action in parser._actions):
            return f"`perflint {verb}` takes it"
    return None
