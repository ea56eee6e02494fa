"""How a module changes: one pass per file. The order is in `hkc/pipeline.py`."""
