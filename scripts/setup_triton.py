"""Put a Triton server into the environment of the Python that runs this, as `make` does."""

from __future__ import annotations

import sys

from proctor.localstack.triton_setup import main

sys.exit(main())
