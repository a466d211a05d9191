"""Faults in the usage, in one line and with a way out."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from typing import NoReturn

from perflint.config.errors import did_you_mean

_HABITS = {
    "--fix": "`perflint fix --apply PATH` writes fixes",
    "--fix-only": "`perflint fix --apply PATH` writes fixes",
    "--diff": "`perflint fix PATH` prints a diff",
    "--format": "`--output-format FORMAT`",
    "--add-noqa": "`perflint check --add-ignore` writes comments",
    "--ignore-noqa": "`--no-ignores` shows what comments silence",
    "--show-fixes": "`perflint fix PATH` prints a diff of the fixes",
    "--jobs": "only `perflint check` takes it",
    "-j": "`perflint check --jobs N`",
    "--target-version": "`--torch-version X.Y` names the oldest torch; Python is the one that runs perflint",
    "--preview": "`--profile pedantic` and `--profile audit` show more",
}
"""Options that users of other linters try, and the way to the same end here."""


class Parser(ArgumentParser):
    """An argument parser whose errors are a line and a help line, as all errors of perflint are."""

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
        if unknown is None:
            return None
        option = unknown[1].partition("=")[0]
        known = [name for action in self._actions for name in action.option_strings]
        return _HABITS.get(option) or did_you_mean(option, known)
