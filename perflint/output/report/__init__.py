"""The HTML report of traces: one page that needs no network and runs no script."""
