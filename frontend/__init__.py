"""Text to tile IR: `read` and `parse` give syntax, `check` gives a typed program, `emit` writes it as MLIR.

`emit` runs in the worker process and is imported only there; everything else here is plain Python.
"""
