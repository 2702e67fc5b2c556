"""A Triton in the cluster that adds up: the chaos runs' model, whose answers are a function of the prompt alone.

Beside it a sentence encoder whose vectors a text's hash decides, with the tensors of Proctor's own: the real one takes
ten milliseconds of a core a text, which for 10⁵ of them would be most of the test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from proctor.inference.reference.triton_repository import model_config
from tests.chaos import arithmetic
from tests.chaos.triton import MODEL_PY, PACE_VARIABLE
from tests.cluster.release import Release

NAME: Final = "sums"
ENCODER: Final = "hashed"
#: File of its pod; see `slow_down`.
_PACE: Final = "/tmp/pace"
_FILES: Final = {
    "config.pbtxt": f"{arithmetic.MODEL}/config.pbtxt",
    "model.py": f"{arithmetic.MODEL}/1/model.py",
    "arithmetic.py": f"{arithmetic.MODEL}/1/arithmetic.py",
    "encoder.pbtxt": f"{ENCODER}/config.pbtxt",
    "encoder.py": f"{ENCODER}/1/model.py",
}
_ENCODER_CONFIG: Final = f"""\
name: "{ENCODER}"
backend: "python"
max_batch_size: 256
dynamic_batching {{ }}
input [ {{ name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }} ]
output [ {{ name: "EMBEDDING" data_type: TYPE_FP32 dims: [ 65 ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
parameters {{ key: "model_digest" value {{ string_value: "sha256:{"e" * 64}" }} }}
parameters {{ key: "encoder_fingerprint" value {{ string_value: "sha256:{"e" * 64}" }} }}
parameters {{ key: "encoder_name" value {{ string_value: "{ENCODER}" }} }}
"""
#: Two different texts are at a cosine distance of about 0.3.
_ENCODER_PY: Final = '''"""Vectors that a text's hash decides."""

import hashlib

import numpy as np
import triton_python_backend_utils as pb_utils


def vector(text):
    seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
    noise = np.random.default_rng(seed).normal(size=64)
    noise *= np.sqrt(0.3) / np.linalg.norm(noise)
    return np.concatenate([[np.sqrt(0.7)], noise]).astype(np.float32)


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().ravel()
            vectors = np.stack([vector(bytes(text)) for text in texts])
            responses.append(pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("EMBEDDING", vectors)]))
        return responses
'''


def slow_down(release: Release, *, answer_s: float) -> None:
    """Have it take so long for an answer, one after the other; meanwhile it costs nothing."""
    # By a file that is moved there, since one that is being written is read as well.
    release.exec(f"deploy/{NAME}", "sh", "-c", f"echo {answer_s} > {_PACE}.new && mv {_PACE}.new {_PACE}")


def hurry(release: Release) -> None:
    """Have it answer as quickly as it can, as at its start."""
    release.exec(f"deploy/{NAME}", "rm", "-f", _PACE)


def manifests(image: str, *, labels: dict[str, str]) -> list[dict[str, Any]]:
    """ConfigMap, Deployment and headless Service, for a namespace of the restricted profile.

    Args:
        image: the trial Triton's, whose entrypoint serves the models of a bundle.
        labels: by which the release's NetworkPolicies know it as a pool's server.
    """
    data = {
        "config.pbtxt": model_config(arithmetic.MODEL, arithmetic.DIGEST),
        "model.py": MODEL_PY,
        "arithmetic.py": Path(arithmetic.__file__).read_text("utf-8"),
        "encoder.pbtxt": _ENCODER_CONFIG,
        "encoder.py": _ENCODER_PY,
    }
    all_labels = {"app": NAME, **labels}
    # One by one: beside the files of a whole volume lie folders of Kubernetes' own, which Triton takes for models.
    files = [{"name": "models", "mountPath": f"/bundle/models/{path}", "subPath": key} for key, path in _FILES.items()]
    ports = [{"name": "http", "containerPort": 8000}, {"name": "grpc", "containerPort": 8001},
             {"name": "metrics", "containerPort": 8002}]  # fmt: skip
    container = {
        "name": "triton", "image": image, "imagePullPolicy": "IfNotPresent",
        "args": ["--bundle", "/bundle"],
        "env": [{"name": PACE_VARIABLE, "value": _PACE}],
        "ports": ports,
        "readinessProbe": {"httpGet": {"path": "/v2/health/ready", "port": "http"}, "periodSeconds": 2},
        "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                            "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [*files, {"name": "tmp", "mountPath": "/tmp"}, {"name": "shm", "mountPath": "/dev/shm"}],
    }  # fmt: skip
    pod = {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "automountServiceAccountToken": False,
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": 5,
        "containers": [container],
        "volumes": [
            {"name": "models", "configMap": {"name": NAME}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}},
        ],
    }
    selector = {"matchLabels": {"app": NAME}}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME, "labels": all_labels},
         "spec": {"replicas": 1, "selector": selector,
                  "template": {"metadata": {"labels": all_labels}, "spec": pod}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "labels": all_labels},
         "spec": {"clusterIP": "None", "selector": {"app": NAME},
                  "ports": [{"name": port["name"], "port": port["containerPort"]} for port in ports]}},
    ]  # fmt: skip
