"""Admission: is a rewording the same question in other words? The gate, its window, and how that is learned."""
