"""Records what a program does to the GPU, and what its lines cost there.

`events`, `file` and `gaps` need nothing but the standard library, so that a trace can be read where
torch is missing; the rest imports torch when the traced program does.
"""
