"""The changes of experiments as fixes of the source. Each module writes those of one kind."""
