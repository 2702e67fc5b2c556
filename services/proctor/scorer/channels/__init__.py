"""Evidence channels: each says in one place what it needs, how it is computed, and how it is worded and shown."""
