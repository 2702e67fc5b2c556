"""Running code that a model wrote, locked away from the machine, its network, its files and its secrets."""
