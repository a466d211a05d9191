"""How often a line runs, and why."""
