"""Which file the items of a suite come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from proctor.domain.rotation import POOL, RETIRED, STATE_SUFFIX
from proctor.domain.suite import DatasetSection

#: The benchmark that comes with Proctor: items and wordings, in the bundle's folder of the same name.
PACKAGED_BENCHMARK: Final = "proctor-facts"
_SUFFIXES: Final = (".jsonl", ".csv", ".parquet")


def benchmark_file(section: DatasetSection, base: Path, bundle: Path, benchmarks: Path | None) -> Path | None:
    """The file that holds a suite's items; None where they come from the hub, or from no file that is known here.

    Args:
        section: the suite's dataset section.
        base: the folder to which its path is relative, the suite file's.
        bundle: the folder of the reference bundle, for the packaged benchmark.
        benchmarks: the operator's folder of benchmarks, for suites that name a benchmark and no file.
    """
    if section.hub_id is not None:
        return None
    if section.path is not None:
        return base / section.path
    if section.benchmark_name == PACKAGED_BENCHMARK:
        return bundle / PACKAGED_BENCHMARK / "items.jsonl"
    if benchmarks is None:
        return None
    return next((path for path in _places(section, benchmarks) if path.is_file() and not _is_kept_back(path)), None)


def places_text(section: DatasetSection, benchmarks: Path) -> str:
    """Where an operator's file of the benchmark is looked for, in words."""
    first = next(_places(section, benchmarks))
    return f"{first} (or .csv, .parquet; or {benchmarks / section.benchmark_name}.jsonl)"


def _is_kept_back(path: Path) -> bool:
    """Whether a file holds what a dataset that is rotated holds out, or has retired: nobody asks that by its name."""
    name, _, part = path.stem.rpartition(".")
    return f".{part}" in (POOL, RETIRED) and path.with_name(name + STATE_SUFFIX).exists()


def _places(section: DatasetSection, benchmarks: Path) -> Iterator[Path]:
    name = section.benchmark_name
    for stem in (Path(name, section.dataset_variant, section.split), Path(name, section.split), Path(name)):
        # A variant or split is free text: one that climbs out of the folder names no benchmark of it.
        if ".." in stem.parts or stem.is_absolute():
            continue
        for suffix in _SUFFIXES:
            yield benchmarks / stem.with_name(stem.name + suffix)
