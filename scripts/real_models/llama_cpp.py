"""`python llama_cpp.py GGUF PORT`: llama.cpp's own server on loopback, which speaks OpenAI's API.

Run by the interpreter that has xllamacpp, without the rest of Proctor.
"""

from __future__ import annotations

import os
import signal
import sys

#: Requests at once, and tokens for all of them together.
_SLOTS, _CONTEXT = 4, 8192


def main(gguf: str, port: int) -> None:
    """Serve until a signal comes."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = gguf
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.n_parallel = _SLOTS
    settings.n_ctx = _CONTEXT
    # Half of the cores: its threads wait for each other without sleep, and whoever asks it needs one as well.
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.ui = False
    # Blocked before the server has its threads, which inherit that.
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    server = xllamacpp.Server(settings)
    print(f"listening on {server.listening_address}", flush=True)
    signal.sigwait(ends)
    # Its threads have nothing to put in order, and one of them would wait for those who keep a connection open.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
