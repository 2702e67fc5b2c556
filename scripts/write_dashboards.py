"""Write Grafana's dashboards of the chart: charts/proctor/dashboards/*.json.

    python scripts/write_dashboards.py            # writes them
    python scripts/write_dashboards.py --check    # says whether they are as this script writes them

What they show stands in scripts/dashboards, a module a dashboard. A test holds the files to this script, and every
metric in a query to those that Proctor declares, or to `FOREIGN`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dashboards.audits import AUDITS
from dashboards.building import text_of
from dashboards.contamination import CONTAMINATION
from dashboards.serving import SERVING

FOLDER: Final = Path(__file__).parents[1] / "charts" / "proctor" / "dashboards"
#: Metrics of others that panels and rules ask for: Triton's own. The last three are there where it has a GPU.
FOREIGN: Final = (
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
    "nv_inference_pending_request_count",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_cpu_utilization",
    "nv_gpu_utilization",
    "nv_gpu_memory_used_bytes",
    "nv_gpu_memory_total_bytes",
)
PAGES: Final = (AUDITS, SERVING, CONTAMINATION)


def main(arguments: Sequence[str]) -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file differs")
    check = parser.parse_args(arguments).check
    differs = False
    for page in PAGES:
        path, text = FOLDER / f"{page.name}.json", text_of(page)
        if check:
            if not path.is_file() or path.read_text("utf-8") != text:
                print(f"{path} is not what {Path(__file__).name} writes: run it", file=sys.stderr)
                differs = True
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"wrote {path}")
    return int(differs)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
