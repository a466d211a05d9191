"""Files: which to check, and the text, trees, spans and suppressions of one."""
