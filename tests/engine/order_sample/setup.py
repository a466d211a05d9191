"""A small project whose files know something of each other: circular imports, callers, decorators, formats."""
