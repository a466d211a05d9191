"""Settings, their sources, and the rules that they select."""
