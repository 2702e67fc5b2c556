"""Datasets of the Hugging Face Hub, at a pinned commit."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.suite import DatasetSection
from proctor.formats.rows import Row

#: The article's name for "the dataset itself"; few datasets on the hub have a configuration of that name.
_DEFAULT_VARIANT = "main"


def hub_rows(section: DatasetSection) -> Iterator[Row]:
    """The rows of a split of a hub dataset. No code of the dataset is run.

    Raises:
        BadInputError: when the package `datasets` is missing, or the dataset has no such split or configuration.
        ProctorError: when the hub cannot be reached and the dataset is not in its cache.
    """
    try:
        import datasets
    except ImportError:
        raise BadInputError(
            f"dataset_config.hub_id {section.hub_id!r} needs the package datasets: pip install 'proctor[hub]', "
            "or download the file and name it in dataset_config.path"
        ) from None
    try:
        configurations = datasets.get_dataset_config_names(section.hub_id, revision=section.hub_revision)
        variant: str | None = section.dataset_variant
        if variant not in configurations and variant == _DEFAULT_VARIANT:
            variant = None
        loaded = datasets.load_dataset(section.hub_id, variant, revision=section.hub_revision, split=section.split)
    except (ConnectionError, TimeoutError, OSError) as error:
        raise ProctorError(
            f"the dataset {section.hub_id!r} at {section.hub_revision} cannot be fetched from the hub "
            f"({_first_line(error)}): check the connection, HF_HUB_OFFLINE and HF_TOKEN, or download the file and "
            "name it in dataset_config.path"
        ) from None
    except Exception as error:
        # The library raises a different class with every release and file format; all of them mean this.
        raise BadInputError(
            f"the dataset {section.hub_id!r} (variant {section.dataset_variant!r}, split {section.split!r}) cannot be "
            f"loaded: {_first_line(error)}"
        ) from None
    for position, values in enumerate(loaded, start=1):
        yield Row(position, dict(values))


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return (lines[0] if lines else type(error).__name__)[:200]
