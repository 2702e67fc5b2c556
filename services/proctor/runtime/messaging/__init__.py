"""Celery and its broker: tasks, events, messages of other versions, and what becomes of what is lost."""
