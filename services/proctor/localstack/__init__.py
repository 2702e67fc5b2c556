"""The stack of one machine: its servers and services, started, watched over and ended as one."""
