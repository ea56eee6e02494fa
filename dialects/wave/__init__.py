"""`hkc_wave`: how it is computed, per lane and per wave. Importing the package fills the registry."""

from hkc.dialects.wave import atomic, convert, ids, lanes, lds, memory, mfma, sync

__all__ = ["atomic", "convert", "ids", "lanes", "lds", "memory", "mfma", "sync"]
