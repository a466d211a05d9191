"""Rules about the comments that silence findings."""
