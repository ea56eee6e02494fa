"""What can be said: the tile dialect (what is computed) and the wave dialect (how), one decorated class per op."""
