"""Calls between the files of a project: who calls a function, how often, and with which arguments."""
