"""Which pod reaches which port: tried from inside the pods, all ports of one pod at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from tests.cluster.kit import Cluster

#: What a NetworkPolicy turns away gets no answer at all; what passes is answered within milliseconds, by a connection
#: or by a refusal of the port's own machine.
_ANSWER_S: Final = 4.0

#: Run by the Python of the pod that is tried from. A refusal is an answer, too: the packet went there and back.
_PROGRAM: Final = f"""
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor

def answers(target):
    host, port = target
    try:
        socket.create_connection((host, port), timeout={_ANSWER_S}).close()
    except ConnectionRefusedError:
        pass
    except OSError:
        return False
    return True

targets = json.load(sys.stdin)
with ThreadPoolExecutor(64) as threads:
    print(json.dumps(list(threads.map(answers, targets))))
"""


class Port(NamedTuple):
    """Where a connection is tried to."""

    component: str
    host: str
    number: int


def reached(cluster: Cluster, namespace: str, pod: str, ports: Iterable[Port]) -> set[tuple[str, int]]:
    """Those of the ports that answer a pod, as (component, number)."""
    tried = list(ports)
    said = cluster.kubectl(
        "-n", namespace, "exec", "-i", pod, "--", "python3", "-c", _PROGRAM,
        input=json.dumps([(port.host, port.number) for port in tried]),
    )  # fmt: skip
    return {(port.component, port.number) for port, answers in zip(tried, json.loads(said), strict=True) if answers}


def reached_from_each(
    cluster: Cluster, namespace: str, pods: Mapping[str, str], ports: Sequence[Port]
) -> dict[str, set[tuple[str, int]]]:
    """The same from several pods at a time; by the names that the pods are given here."""
    with ThreadPoolExecutor(len(pods)) as threads:
        found = threads.map(lambda pod: reached(cluster, namespace, pod, ports), pods.values())
        return dict(zip(pods, found, strict=True))
