"""Where a value in a function comes from, and where it goes."""
