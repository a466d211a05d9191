"""Outlines the step of a training loop into a function that is replayed as a CUDA graph."""
