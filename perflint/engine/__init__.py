"""Rules at work: on one file, and on many."""
