"""Near duplicates: documents that say what an item says in other words, and ask the same."""
