"""Rules whose findings only a trace can show."""
