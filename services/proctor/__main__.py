"""`python -m proctor`: the `proctor` command."""

from __future__ import annotations

import sys

from proctor.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
