"""Which files of a hub repository hold a split: told by their names, as the hub's own viewer tells them. Pure.

Nothing that lies in a repository decides it: no loading script is run and no configuration is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.suite import DatasetSection
from proctor.formats.faults import shown

#: The first of these that a split has is read: its values carry their types.
SUFFIXES: Final = (".parquet", ".jsonl", ".csv")
#: The article's name for "the dataset itself"; few datasets on the hub have a configuration of that name.
_DEFAULT_VARIANTS: Final = ("main", "default")
_SHARD: Final = r"(?:-\d{5}-of-\d{5}(?:-[0-9a-f]{1,32})?)?"
_DIGESTS: Final = {40: "sha1", 64: "sha256"}
_NAMED: Final = 8


class HubFile(NamedTuple):
    """A file of a repository at a commit, as the hub lists it."""

    path: str
    size: int
    digest: str
    """Of its bytes: SHA-256 for large files, git's SHA-1 of the blob for the others."""


def listed_file(entry: Any) -> HubFile | None:
    """A file of the hub's listing; None for what is none, or has not the form of one."""
    if not isinstance(entry, Mapping) or entry.get("type") != "file":
        return None
    large = entry.get("lfs")
    about = large if isinstance(large, Mapping) else entry
    path, size, digest = entry.get("path"), about.get("size"), about.get("oid")
    if not isinstance(path, str) or not isinstance(digest, str) or not re.fullmatch("[0-9a-f]+", digest):
        return None
    if isinstance(size, bool) or not isinstance(size, int) or size < 0 or len(digest) not in _DIGESTS:
        return None
    # The path becomes a part of an address: what would climb, or be read as something else there, is no file of ours.
    plain = all(part not in ("", ".", "..") for part in path.split("/")) and path.isprintable()
    return HubFile(path, size, digest) if plain and "\\" not in path else None


def files_of_split(files: Iterable[HubFile], section: DatasetSection) -> list[HubFile]:
    """The files that hold a suite's split, in the order of their names.

    In the folder that is called like the suite's variant, in the repository's top or its folder `data` where the
    variant is the dataset itself, or in the one other folder that has the split.

    Raises:
        BadInputError: when there is none, or more folders than one; with what there is.
    """
    data = [file for file in files if PurePosixPath(file.path).suffix in SUFFIXES]
    folders: dict[str, list[HubFile]] = {}
    for file in data:
        folder = _folder_of_split(PurePosixPath(file.path), section)
        if folder is not None:
            folders.setdefault(folder, []).append(file)
    variant = section.dataset_variant
    places = [variant, f"data/{variant}"]
    if variant in _DEFAULT_VARIANTS:
        places += ["", "data"]
    found = next((folders[place] for place in places if place in folders), None)
    if found is None and variant in _DEFAULT_VARIANTS and len(folders) == 1:
        found = next(iter(folders.values()))
    if found is None:
        names = sorted(folders) or sorted(file.path for file in data)
        raise BadInputError(
            f"the dataset {section.hub_id!r} has no file of the split {section.split!r} of {variant!r} that can be "
            f"told by its name ({'; '.join(shown(name) for name in names[:_NAMED]) or 'no Parquet, JSONL or CSV'}): "
            "mend dataset_variant or split, or download the file and name it in dataset_config.path"
        )
    return sorted(_of_one_suffix(found))


def _folder_of_split(path: PurePosixPath, section: DatasetSection) -> str | None:
    """The folder to whose split a file belongs; None for a file of another split."""
    split = re.escape(section.split)
    if re.fullmatch(rf"{split}{_SHARD}", path.stem):
        return _text(path.parent)
    if path.parent.name == section.split:
        return _text(path.parent.parent)
    # A file that names no split is the hub's `train`.
    if section.split == "train" and path.stem == section.dataset_variant:
        return section.dataset_variant
    return None


def _text(folder: PurePosixPath) -> str:
    return "" if folder == PurePosixPath() else str(folder)


def _of_one_suffix(files: Sequence[HubFile]) -> list[HubFile]:
    by_suffix = {suffix: [file for file in files if file.path.endswith(suffix)] for suffix in SUFFIXES}
    return next(found for found in by_suffix.values() if found)
