"""Launches: what a kernel is given, and the devices that run it: `emulator` anywhere, `hip` where there is a GPU."""
