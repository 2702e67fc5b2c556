"""Set up a real language model and three servers of it: `make models`.

SmolLM2-135M-Instruct behind llama.cpp, vLLM and Triton's vLLM backend, all for processors, below the environment of the
Python that runs this. About 3 GB. What is there already is left alone, so it goes on where it was interrupted.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from proctor.localstack.real_models import Part, RealModels
from real_models import backend, environment, weights
from real_models.steps import SetupError, room_for, take

_NEEDED_BYTES: Final = 4_000_000_000


def main() -> int:
    """Take the steps, and say of each what happened."""
    models = RealModels.here()
    steps = (environment.step, weights.step, backend.step)
    try:
        if any(models.installed(part) is None for part in Part):
            room_for(models, _NEEDED_BYTES)
        for number, found in enumerate(steps, 1):
            # What a step makes is what the next one may have to be made of.
            step = found(models)
            which = f"[{number}/{len(steps)}] {step.does}"
            print(f"{which} …", flush=True)
            begun = time.monotonic()
            taken = take(step, models)
            print(f"{which}: {f'{time.monotonic() - begun:.0f} s' if taken else 'there already'}", flush=True)
    except (SetupError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"All is in {os.path.relpath(models.root)}; `proctor doctor --models` lists it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
