"""Migrations of the record store (`proctor.runtime.records.schema`), which Alembic applies without an env.py."""
