"""Setting up and serving a real language model on processors: `make models`, `make test-models`."""
