"""What the local MLflow signs its webhooks with, and keeps that secret by: drawn once a home, for its owner alone.

Both outlive the stack: MLflow's database does, with the webhook and its secret in it.
"""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

from proctor.domain.errors import StackError
from proctor.runtime.files import write_atomic

#: What is shorter was cut off, or was never written here.
_LEAST_CHARACTERS = 16


def webhook_secret_file(home: Path) -> Path:
    """The file that holds the secret: one line, as a gateway reads it."""
    return home / "mlflow-webhooks" / "secret"


def webhook_secret(home: Path) -> str:
    """The secret that MLflow and the gateway of a home share; made where there is none.

    Raises:
        StackError: when it can be neither read nor written.
    """
    return _kept(webhook_secret_file(home), secrets.token_urlsafe(32))


def encryption_key(home: Path) -> str:
    """The key by which MLflow encrypts the secrets of its webhooks; made where there is none.

    Raises:
        StackError: as `webhook_secret`.
    """
    # The form that Fernet's keys have. Without a key of its own, MLflow does not read back what it stored.
    drawn = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return _kept(webhook_secret_file(home).with_name("encryption-key"), drawn)


def _kept(path: Path, drawn: str) -> str:
    try:
        if path.exists():
            found = path.read_text("ascii").strip()
            if len(found) < _LEAST_CHARACTERS:
                raise StackError(f"{path} holds no secret: remove it, and a new one is drawn")
            return found
        write_atomic(path, f"{drawn}\n".encode())
    except (OSError, UnicodeDecodeError) as error:
        raise StackError(f"the secret of the local MLflow's webhooks cannot be kept in {path}: {error}") from None
    return drawn
