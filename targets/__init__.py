"""What the silicon is: one folder of tables per chip, and the records that they become."""
