"""What is read out of machine code: loops, rounds, occupancy, floors of a time."""
