"""Taking a suite on: where its prompts may go, and how large they may be."""
