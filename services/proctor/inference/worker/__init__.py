"""The inference worker: its tasks, the contract of a backend, and shards on their way through one."""
