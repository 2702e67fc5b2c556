"""What workers count and time, and how Prometheus gets it."""
