"""The parts of the generator of torch facts."""
