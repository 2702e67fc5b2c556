"""Migrations of the record store (`proctor.runtime.record_schema`), applied by Alembic without an env.py of its own."""
