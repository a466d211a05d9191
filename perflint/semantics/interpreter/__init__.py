"""The abstract interpreter: runs the code of a project over the lattice of values."""
