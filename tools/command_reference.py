"""The page of all verbs and options, from the parsers of the command (`python tools/generate_docs.py` writes it)."""

from __future__ import annotations

import importlib
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator
from inspect import cleandoc

from perflint.cli.main import VERBS
from perflint.cli.usage import Parser, described

_INTRODUCTION = """\
# Command line

`perflint COMMAND --help` prints the same for one command. The exit status is 0 without findings, 1 with findings and 2
after a fault in the usage, the settings, a file or perflint; `perflint trace` ends with the status of the program. Most
options have a [setting](settings.md) and an environment variable, too.
"""


def page() -> str:
    """The whole page as Markdown."""
    index = [
        "| command | effect |",
        "|---|---|",
        *(f"| [`{verb}`](#perflint-{verb}) | {does} |" for verb, does in VERBS.items()),
    ]
    return "\n\n".join([_INTRODUCTION.rstrip(), "\n".join(index), *map(_section, VERBS)]) + "\n"


def _section(verb: str) -> str:
    module = importlib.import_module(f"perflint.cli.{verb}")
    parser = Parser(f"perflint {verb}")
    module.add_arguments(parser)
    parts = [f"## perflint {verb}", f"```\n{_usage(parser)}\n```", _paragraphs(module.__doc__ or "")]
    for group in described(parser)._action_groups:
        rows = [
            _row(parser, action) for action in group._group_actions if action.dest != "help" and action.help != SUPPRESS
        ]
        if rows:
            title = (
                "" if group.title in ("positional arguments", "options", None) else f"**{_capital(group.title)}**\n\n"
            )
            parts.append(title + "\n".join(["| argument | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _paragraphs(text: str) -> str:
    """The description of a verb. Lines that are examples of commands keep their own line."""
    return "\n\n".join("<br>\n".join(_joined(part.splitlines())) for part in cleandoc(text).split("\n\n"))


def _joined(lines: list[str]) -> Iterator[str]:
    """The sentences of a paragraph as one line, and each line with a command as another."""
    sentence: list[str] = []
    for line in lines:
        if ": perflint " in line:
            name, _, command = line.partition(": ")
            yield f"{name}: `{command}`"
        else:
            sentence.append(line)
    if sentence:
        yield " ".join(sentence)


def _usage(parser: ArgumentParser) -> str:
    """The usage, without the list of options, which the tables have."""
    if parser.usage is not None:
        return cleandoc(parser.usage.removeprefix("usage: "))
    operands = [_operand(action) for action in parser._actions if not action.option_strings and action.help != SUPPRESS]
    return " ".join([parser.prog, "[options]", *operands])


def _operand(action: Action) -> str:
    name = _metavar(action)
    return {"*": f"[{name} ...]", "+": f"{name} [{name} ...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def _metavar(action: Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _row(parser: ArgumentParser, action: Action) -> str:
    takes_value = action.option_strings and action.nargs != 0
    value = f" {_metavar(action)}" if takes_value else ""
    value = f" [{value.strip()}]" if takes_value and action.nargs == "?" else value
    names = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{_metavar(action)}`"
    # The only way to the text with its defaults filled in.
    meaning = parser._get_formatter()._expand_help(action) if action.help else ""
    return f"| {_cell(names)} | {_cell(_capital(meaning))} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
