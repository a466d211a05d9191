"""Print the code that completes perflint's commands and options in a shell.

bash: perflint completion bash > ~/.local/share/bash-completion/completions/perflint
zsh: perflint completion zsh > a file _perflint in a folder of $fpath
fish: perflint completion fish > ~/.config/fish/completions/perflint.fish
"""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser, Namespace

from perflint.config.errors import ConfigurationError

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
_PATHS = {"PATH", "FILE", "DIR", "KEY=VALUE|FILE", "FILE:LINE[:COLUMN]"}
"""The placeholders of arguments that are paths."""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `perflint completion`."""
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: Namespace) -> int:
    """Print the code. Raises ConfigurationError without the library that writes it."""
    try:
        shtab = importlib.import_module("shtab")
    except ImportError:
        help = "`pip install shtab` beside perflint"
        raise ConfigurationError("completion needs shtab", help) from None
    if arguments.shell not in shtab.SUPPORTED_SHELLS:
        raise ConfigurationError(f"this shtab knows no {arguments.shell}", "pip install --upgrade shtab")
    sys.stdout.write(shtab.complete(_whole(shtab.FILE), arguments.shell).rstrip() + "\n")
    return 0


def _whole(complete_path: object) -> ArgumentParser:
    """One parser for all verbs, whose paths are completed."""
    from perflint.cli.main import VERBS
    from perflint.cli.usage import described

    parser = ArgumentParser("perflint")
    parser.add_argument("--version", "-V", action="store_true", help="print the version")
    verbs = parser.add_subparsers()
    for verb, does in VERBS.items():
        each = verbs.add_parser(verb, help=does)
        importlib.import_module(f"perflint.cli.{verb}").add_arguments(each)
        for action in described(each)._actions:
            if action.metavar in _PATHS:
                # shtab reads this attribute.
                vars(action)["complete"] = complete_path
    return parser
