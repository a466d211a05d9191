"""The origins and the uses of the values in a function."""
