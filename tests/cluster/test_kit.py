"""The cluster that the tests run on is a real one."""

from __future__ import annotations

import json

from tests.cluster.kit import Cluster


def test_the_cluster_answers_with_a_ready_node_and_keda(cluster: Cluster) -> None:
    (node,) = cluster.get("nodes")["items"][:1]
    assert {"type": "Ready", "status": "True"}.items() <= next(
        condition for condition in node["status"]["conditions"] if condition["type"] == "Ready"
    ).items()
    if cluster.is_kit:
        assert "scaledobjects.keda.sh" in cluster.kubectl("get", "crds", "-o", "name")


def test_a_namespace_of_the_restricted_profile_refuses_a_pod_that_may_be_root(cluster: Cluster) -> None:
    with cluster.namespace("kit") as namespace:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad", "namespace": namespace},
               "spec": {"containers": [{"name": "c", "image": "any:1"}]}}  # fmt: skip
        refused = cluster.run("apply", "-f", "-", input=json.dumps(pod))
        assert "violates PodSecurity" in refused.stderr
