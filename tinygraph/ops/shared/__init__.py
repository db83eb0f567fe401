"""What several ops share: axes, operands and broadcasting, losses, products, launches."""
