"""Safe fixes over many operands: code with holes is filled, fixed, and run before and after.

`templates` holds the code, a table for each rule. `operands` holds what the parameters of that code get, and the
contexts around it. `covering` picks combinations. `observing` says what a run gave: values, strides, shared
memory, gradients, errors, and what happens when somebody writes to the result. `running` compares both.
"""
