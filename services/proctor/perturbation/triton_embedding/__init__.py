"""The sentence encoder as a Triton model: what its configuration states, what serves it, and what lays it down."""
