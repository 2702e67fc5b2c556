"""What a process says in its log: where it goes, in which form, and of which audit, shard or request a line is."""
