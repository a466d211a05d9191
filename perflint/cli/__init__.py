"""The command line: one module for each verb.

A verb's module has `add_arguments(parser)` and `run(arguments) -> int`, the exit code.
"""
