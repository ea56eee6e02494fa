"""What everything stands on: errors and their rendering, dtypes, the worker process, LLVM, MLIR and the linker."""
