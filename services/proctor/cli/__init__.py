"""The `proctor` command: one module a command group."""
