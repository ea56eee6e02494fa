"""From LLVM IR to a code object, and the proof that this machine's tools can do it."""
