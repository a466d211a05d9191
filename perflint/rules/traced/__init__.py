"""What only a trace can show."""
