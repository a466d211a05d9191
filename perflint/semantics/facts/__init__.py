"""Facts about torch, other libraries and the names of the field, without any analysed code."""
