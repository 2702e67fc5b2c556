"""Pack the real data that tests read, so that they run where it does not lie beside the repository.

    python scripts/pack_test_data.py FOLDER

FOLDER is the data as it lies beside the repository. Writes tests/data/real.tar.xz: the same data gives the same bytes.
What is in it, where it is from and under which licence stands in tests/data/README.md.
"""

from __future__ import annotations

import argparse
import io
import lzma
import tarfile
from pathlib import Path
from typing import Final

ARCHIVE: Final = Path(__file__).parents[1] / "tests" / "data" / "real.tar.xz"
#: What tests read, and the licences that have to go with it.
PACKED: Final = (
    "gsm8k/LICENSE",
    "gsm8k/test.jsonl",
    "gsm8k/rephrased.jsonl",
    "case_study/winner_max_new768.json",
    "case_study/instruct_max_new768.json",
    "lm_eval_logs/winner.jsonl",
    "lm_eval_logs/instruct.jsonl",
    "mmlu_rephrased/LICENSE",
    "mmlu_rephrased/abstract_algebra.jsonl",
    "mmlu_rephrased/abstract_algebra_rephrased.jsonl",
    "mmlu_rephrased/high_school_us_history.jsonl",
    "mmlu_rephrased/high_school_us_history_rephrased.jsonl",
    "mmlu_rephrased/sociology.jsonl",
    "mmlu_rephrased/sociology_rephrased.jsonl",
    "paper/model_router_details.csv",
)


def packed(folder: Path) -> bytes:
    """The archive of a folder's data: no times, no owners, and its files in one order."""
    uncompressed = io.BytesIO()
    with tarfile.open(fileobj=uncompressed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in PACKED:
            data = (folder / name).read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return lzma.compress(uncompressed.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def main() -> None:
    """Write the archive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the data as it lies beside the repository")
    folder: Path = parser.parse_args().folder
    if missing := [name for name in PACKED if not (folder / name).is_file()]:
        parser.error(f"{folder} has no {missing[0]}")
    data = packed(folder)
    ARCHIVE.write_bytes(data)
    print(f"{ARCHIVE.name}: {len(PACKED)} files, {len(data):,} bytes")


if __name__ == "__main__":
    main()
