"""A corpus' file as bytes that can be read from any place in it, wherever it is."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, cast

from proctor.domain.errors import BadInputError
from proctor.exposure.corpus_file import CorpusFile


def opened(file: CorpusFile) -> BinaryIO:
    """The file's bytes, unbuffered.

    Raises:
        BadInputError: when a file of this machine cannot be opened.
        Unreadable: when one that is elsewhere cannot be had; one in a bucket says it as it is read.
    """
    if file.scheme == "s3":
        from proctor.exposure.remote.bucket import ObjectStream

        return cast("BinaryIO", ObjectStream(file))
    if file.scheme == "hf":
        from proctor.exposure.remote.hub_corpus import fetched

        return fetched(file)
    try:
        return cast("BinaryIO", Path(file.path).open("rb", buffering=0))
    except OSError as error:
        raise BadInputError(f"{file.path} cannot be read: {error.strerror or error}") from None
