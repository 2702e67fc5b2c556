"""Ways to reword an item: one module each, and chains of them."""
