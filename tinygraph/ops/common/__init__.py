"""What several wings share: broadcasting, launches, sums, random numbers, casts."""
