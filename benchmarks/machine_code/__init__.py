"""What is read out of machine code: loops, rounds, and the bounds that files state for them."""
