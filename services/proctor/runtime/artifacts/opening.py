"""The artifact store that the settings name."""

from __future__ import annotations

from pathlib import Path

from proctor.domain.errors import BadInputError
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.location import s3_location
from proctor.runtime.artifacts.store import StoreOfArtifacts
from proctor.runtime.settings import Settings


def open_artifacts(settings: Settings) -> StoreOfArtifacts:
    """The artifact store that the settings name: a folder, or S3-compatible storage. Nothing is asked of it yet.

    Raises:
        BadInputError: when the settings name neither, or the client of S3 is not installed.
    """
    location = s3_location(settings.artifacts, settings.s3_endpoint_url)
    if location is None:
        return LocalArtifacts(Path(settings.artifacts))
    try:
        # Its client is an extra.
        from proctor.runtime.artifacts.s3 import S3Artifacts
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise BadInputError(
            f"artifacts are kept in {location}, and the client for that is not installed; run: pip install obstore"
        ) from None
    return S3Artifacts(location)
