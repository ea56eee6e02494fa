"""What a compiled kernel is: its ABI as data, the ELF and its notes, and its decoded instructions."""
