"""The parts of a file that run in another way: compiled, captured, scripted, or on the CPU."""
