"""What every service stands on: settings, Celery application, stores, local stack."""
