"""Changes that a program could make, timed with its own shapes: before and after in turn, outputs compared.

Layers are rebuilt from what `ModuleCall` records say of them (`layers`), so that their experiments
need nothing of the program. Those of the whole model work on a copy of it (`live`, `models`).
"""
