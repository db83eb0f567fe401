"""What an exercise is: its files, read."""
