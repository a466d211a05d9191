"""Tests of the tracer, on the host."""
