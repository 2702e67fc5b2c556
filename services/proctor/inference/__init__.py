"""Runs models, and knows nothing of audits: one module a backend, and the tasks that drive them."""
