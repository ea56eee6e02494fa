"""What the instructions do, one module per class."""
