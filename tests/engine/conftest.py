"""What pytest does not collect."""

from __future__ import annotations

collect_ignore = ["order_sample"]
"""A project that is only checked: its tests cannot run."""
