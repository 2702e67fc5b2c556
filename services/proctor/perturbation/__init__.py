"""Variants: strategies that make them, the gate that admits them, the library that keeps them."""
