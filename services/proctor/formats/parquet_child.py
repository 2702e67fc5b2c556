"""The program that reads a Parquet file for `parquet_rows`, under limits. It trusts nothing and holds no secret.

Its orders come as lines of JSON: the file, answered by the names of its columns, and what to read of it, answered by a
line of JSON a row. A line that begins with a mark says that this was all, or what went wrong.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any, Final

#: Marks at the beginning of a line that is no JSON.
ENDED: Final = b"."
FAILED: Final = b"!"
LONG: Final = b"+"
#: The one key of an object that stands for a value which JSON does not know.
NOT_JSON: Final = "\u0000not JSON"
#: Rows that are decoded at once: so many of the longest must fit into the child's memory.
_BATCH: Final = 16
_CHUNK_BYTES: Final = 1 << 20
_SHOWN: Final = 200


def main() -> None:
    """Read what the orders on standard input say, and write it to standard output."""
    memory, seconds = map(int, sys.argv[1:3])
    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        # Never above what the parent itself has been given.
        own = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (own, own))
    out = sys.stdout.buffer
    try:
        _read(json.loads(sys.stdin.readline()))
    except MemoryError:
        # pyarrow's own is one, too.
        out.write(FAILED + f"a page, row or list of it takes more than {memory >> 20} MiB\n".encode())
    except Exception as error:
        reason = str(error).partition("\n")[0][:_SHOWN]
        out.write(FAILED + (reason or type(error).__name__).encode("utf-8", "replace") + b"\n")
    else:
        out.write(ENDED + b"\n")


def _read(path: str) -> None:
    import pyarrow
    from pyarrow import parquet

    # A pool of threads would reserve more memory than the rows take.
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    out = sys.stdout.buffer
    with parquet.ParquetFile(path, buffer_size=_CHUNK_BYTES, pre_buffer=False) as file:
        out.write(json.dumps(file.schema_arrow.names).encode() + b"\n")
        out.flush()
        order = json.loads(sys.stdin.readline())
        left = order["rows"]
        for batch in file.iter_batches(batch_size=_BATCH, columns=order["columns"], use_threads=False):
            for values in batch.to_pylist()[:left]:
                line = json.dumps(values, default=_told, ensure_ascii=False).encode()
                out.write((line if len(line) <= order["row_bytes"] else LONG) + b"\n")
            left -= min(left, len(batch))
            if not left:
                break


def _told(value: Any) -> dict[str, str]:
    return {NOT_JSON: repr(value)[:_SHOWN]}


if __name__ == "__main__":
    main()
