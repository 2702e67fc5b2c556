"""What registries send when something is registered: who sent it, and what it says."""
