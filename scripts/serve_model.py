"""Serve the real model on loopback until interrupted: `python scripts/serve_model.py llama.cpp|vllm|triton`.

`make models` sets the servers up. Prints the model section of a suite that asks the server, as soon as it is ready.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from types import FrameType

from proctor.localstack.real_models import MODEL, Part, RealModels
from real_models.serving import SERVERS, Command, Ports, clear_regions, end, is_ready


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", choices=list(SERVERS))
    parser.add_argument("--port", type=int, default=8000, help="of OpenAI's API or gRPC; Triton takes three [8000]")
    given = parser.parse_args()
    models, server = RealModels.here(), SERVERS[given.server]
    if reason := models.lacking(*server.needs):
        print(f"error: {reason}", file=sys.stderr)
        return 1
    ports = Ports.beginning_at(given.port)
    command = server.command(models, ports)
    process = subprocess.Popen(command.argv, env=command.env, start_new_session=True)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _serve(process, command, models)
    except KeyboardInterrupt:
        return 0
    finally:
        end(process)
        clear_regions(ports)


def _serve(process: subprocess.Popen[bytes], command: Command, models: RealModels) -> int:
    while process.poll() is None and not is_ready(command):
        time.sleep(0.5)
    if process.poll() is None:
        section = {
            "model_id": f"HuggingFaceTB/{MODEL}",
            "model_version": (models.installed(Part.WEIGHTS) or {}).get("weights"),
            "endpoint": command.url,
            "served_name": command.served_name,
        }
        print(json.dumps({"model_config": section}, indent=2), flush=True)
    return process.wait()


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
