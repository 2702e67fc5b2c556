"""Faults that are planted in a good release, one or more for each policy, which has to find them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tests.charts.good_release import good_release
from tests.charts.manifests import Manifest
from tests.charts.rendering import Release

Plant = Callable[[Release], Release | None]


class Planted(NamedTuple):
    """A fault: the policy that has to find it, what it is called, and the change that makes it."""

    policy: str
    name: str
    change: Plant


PLANTED: Final[list[Planted]] = []


def plants(policy: str) -> Callable[[Plant], Plant]:
    """Enter a change as a fault that a policy has to find."""

    def enter(change: Plant) -> Plant:
        PLANTED.append(Planted(policy, str(change.__name__), change))
        return change

    return enter


def bad_release(fault: Planted) -> Release:
    """The good release with a fault."""
    release = good_release()
    return fault.change(release) or release


def named(release: Release, kind: str, name: str) -> Manifest:
    """An object that is there."""
    found = release.find(kind, name)
    assert found is not None
    return found


def pod(release: Release, component: str = "router") -> Manifest:
    """The pod of a component's workload."""
    kind = "Job" if component == "migrate" else "Deployment"
    spec: Manifest = named(release, kind, f"good-{component}")["spec"]["template"]["spec"]
    return spec


def container(release: Release, component: str = "router") -> Manifest:
    """The container of a component's workload."""
    first: Manifest = pod(release, component)["containers"][0]
    return first


def without(release: Release, kind: str, name: str) -> Release:
    """The release without an object."""
    named(release, kind, name)
    kept = (one for one in release.objects if (one["kind"], one["metadata"]["name"]) != (kind, name))
    return replace(release, objects=tuple(kept))


def with_object(release: Release, api: str, kind: str, name: str, **rest: Any) -> Release:
    """The release with another object."""
    metadata = {"name": name, "labels": dict(release.objects[0]["metadata"]["labels"])}
    return replace(release, objects=(*release.objects, {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}))


# Images.


@plants("an_image_is_one_version")
def the_tag_is_latest(release: Release) -> None:
    container(release)["image"] = "registry:5000/proctor/router:latest"


@plants("an_image_is_one_version")
def there_is_no_tag_and_the_registry_has_a_port(release: Release) -> None:
    container(release)["image"] = "registry:5000/proctor/router"


@plants("an_image_is_one_version")
def the_digest_is_cut_short(release: Release) -> None:
    container(release)["image"] = "proctor/router@sha256:abc"


@plants("an_image_is_pulled_when_it_is_not_there")
def the_image_is_always_pulled(release: Release) -> None:
    container(release)["imagePullPolicy"] = "Always"


# Containers.


@plants("a_container_says_what_it_needs")
def nothing_limits_memory(release: Release) -> None:
    del container(release)["resources"]["limits"]["memory"]


@plants("a_container_says_what_it_needs")
def more_is_requested_than_allowed(release: Release) -> None:
    container(release)["resources"]["requests"]["memory"] = "1Gi"


@plants("a_container_has_probes")
def nobody_asks_whether_it_lives(release: Release) -> None:
    del container(release)["livenessProbe"]


@plants("a_container_has_probes")
def a_probe_asks_a_port_that_is_not_there(release: Release) -> None:
    container(release)["readinessProbe"]["httpGet"]["port"] = "http"


@plants("a_worker_lives_by_its_progress")
def a_worker_is_only_pinged(release: Release) -> None:
    container(release)["livenessProbe"]["httpGet"]["path"] = "/metrics"


@plants("a_probe_gives_time")
def one_slow_answer_ends_it(release: Release) -> None:
    container(release)["livenessProbe"]["failureThreshold"] = 1


@plants("a_variable_is_set_once")
def a_variable_is_set_twice(release: Release) -> None:
    container(release)["env"].append({"name": "PROCTOR_HOME", "value": "/elsewhere"})


# Pod Security.


@plants("a_pod_shares_nothing_with_its_host")
def the_network_is_the_host_s(release: Release) -> None:
    pod(release)["hostNetwork"] = True


@plants("a_pod_shares_nothing_with_its_host")
def a_port_of_the_host_is_taken(release: Release) -> None:
    container(release)["ports"][0]["hostPort"] = 9090


@plants("a_pod_shares_nothing_with_its_host")
def a_kernel_setting_is_changed(release: Release) -> None:
    pod(release)["securityContext"]["sysctls"] = [{"name": "kernel.msgmax", "value": "1"}]


@plants("a_pod_has_volumes_that_the_profile_allows")
def a_path_of_the_host_is_mounted(release: Release) -> None:
    pod(release)["volumes"][0] = {"name": "tmp", "hostPath": {"path": "/tmp"}}


@plants("a_container_has_no_privilege")
def it_may_become_privileged(release: Release) -> None:
    del container(release)["securityContext"]["allowPrivilegeEscalation"]


@plants("a_container_has_no_privilege")
def it_keeps_a_capability(release: Release) -> None:
    container(release)["securityContext"]["capabilities"]["add"] = ["SYS_ADMIN"]


@plants("a_container_has_no_privilege")
def an_init_container_keeps_its_capabilities(release: Release) -> None:
    before = {**container(release), "name": "before", "securityContext": {"allowPrivilegeEscalation": False}}
    pod(release)["initContainers"] = [before]


@plants("a_container_runs_as_nobody_special")
def it_runs_as_root(release: Release) -> None:
    container(release)["securityContext"]["runAsUser"] = 0


@plants("a_container_runs_as_nobody_special")
def the_container_takes_back_what_the_pod_says(release: Release) -> None:
    container(release)["securityContext"]["runAsNonRoot"] = False


@plants("a_container_is_confined")
def no_seccomp_profile_holds(release: Release) -> None:
    del pod(release)["securityContext"]["seccompProfile"]


@plants("a_container_writes_where_it_is_told")
def the_root_can_be_written(release: Release) -> None:
    container(release)["securityContext"]["readOnlyRootFilesystem"] = False


@plants("a_container_writes_where_it_is_told")
def scratch_has_no_end(release: Release) -> None:
    pod(release)["volumes"][0]["emptyDir"] = {}


# Access.


@plants("a_component_has_a_service_account_of_its_own")
def two_components_share_an_account(release: Release) -> None:
    pod(release, "inference")["serviceAccountName"] = "good-router"


@plants("a_component_has_a_service_account_of_its_own")
def it_runs_as_the_namespace_s_account(release: Release) -> None:
    del pod(release)["serviceAccountName"]


@plants("a_service_account_is_used")
def an_account_is_left_over(release: Release) -> Release:
    return with_object(release, "v1", "ServiceAccount", "good-former")


@plants("a_token_is_mounted_where_it_opens_something")
def a_token_opens_nothing(release: Release) -> None:
    pod(release, "inference")["automountServiceAccountToken"] = True


@plants("a_token_is_mounted_where_it_opens_something")
def a_role_has_no_token(release: Release) -> None:
    pod(release)["automountServiceAccountToken"] = False


@plants("a_role_names_what_it_grants")
def every_verb_is_granted(release: Release) -> None:
    named(release, "Role", "good-router")["rules"][0]["verbs"] = ["*"]


@plants("a_role_names_what_it_grants")
def every_subresource_is_granted(release: Release) -> None:
    named(release, "Role", "good-router")["rules"][0]["resources"] = ["leases/*"]


@plants("a_role_is_held_to_objects")
def any_lease_may_be_changed(release: Release) -> None:
    del named(release, "Role", "good-router")["rules"][0]["resourceNames"]


@plants("a_role_is_held_to_objects")
def secrets_are_listed(release: Release) -> None:
    named(release, "Role", "good-router")["rules"].append(
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}
    )


@plants("a_role_is_held_to_objects")
def secrets_of_the_whole_cluster_are_read(release: Release) -> None:
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["one"]}
    role, binding = named(release, "Role", "good-router"), named(release, "RoleBinding", "good-router")
    role |= {"kind": "ClusterRole", "rules": [rule]}
    binding |= {"kind": "ClusterRoleBinding"}
    binding["roleRef"]["kind"] = "ClusterRole"


@plants("a_role_is_of_the_table")
def it_may_do_what_nobody_listed(release: Release) -> None:
    named(release, "Role", "good-router")["rules"].append(
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"], "resourceNames": ["good-router"]}
    )


@plants("a_role_is_of_the_table")
def another_component_is_bound(release: Release) -> None:
    named(release, "RoleBinding", "good-router")["subjects"][0]["name"] = "good-inference"


@plants("a_role_is_bound")
def a_role_stands_there_unbound(release: Release) -> Release:
    return with_object(release, "rbac.authorization.k8s.io/v1", "Role", "former", rules=[])


# Network.


@plants("everything_is_denied_to_begin_with")
def nothing_is_denied(release: Release) -> Release:
    return without(release, "NetworkPolicy", "good")


@plants("everything_is_denied_to_begin_with")
def only_what_comes_in_is_denied(release: Release) -> None:
    named(release, "NetworkPolicy", "good")["spec"]["policyTypes"] = ["Ingress"]


@plants("a_pod_has_a_policy_in_both_directions")
def a_policy_takes_in_no_pod(release: Release) -> None:
    named(release, "NetworkPolicy", "good-router")["spec"]["podSelector"]["matchLabels"]["tier"] = "none"


@plants("a_pod_has_a_policy_in_both_directions")
def rules_hold_in_a_direction_that_is_not_said(release: Release) -> None:
    named(release, "NetworkPolicy", "good-router")["spec"]["policyTypes"] = ["Ingress"]


@plants("a_pod_has_a_policy_in_both_directions")
def a_pod_has_no_policy_beside_the_one_that_denies(release: Release) -> Release:
    return without(release, "NetworkPolicy", "good-inference")


@plants("a_rule_names_its_ports")
def any_port_is_open(release: Release) -> None:
    del named(release, "NetworkPolicy", "good-inference")["spec"]["egress"][0]["ports"]


@plants("no_rule_leads_to_the_metadata")
def a_block_holds_the_metadata(release: Release) -> None:
    rule = {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 80, "protocol": "TCP"}]}
    named(release, "NetworkPolicy", "good-router")["spec"]["egress"].append(rule)


@plants("no_rule_leads_to_the_metadata")
def anybody_is_reached_by_http(release: Release) -> None:
    named(release, "NetworkPolicy", "good-router")["spec"]["egress"][1]["ports"].append({"port": 80, "protocol": "TCP"})


@plants("a_rule_names_its_peers")
def every_pod_of_the_cluster_is_let_in(release: Release) -> None:
    named(release, "NetworkPolicy", "good-valkey")["spec"]["ingress"][0]["from"].append({"namespaceSelector": {}})


@plants("a_rule_names_its_peers")
def a_rule_from_nobody_lets_in_everybody(release: Release) -> None:
    named(release, "NetworkPolicy", "good-valkey")["spec"]["ingress"][0]["from"] = []


@plants("what_one_side_may_send_the_other_takes")
def the_other_side_does_not_let_it_in(release: Release) -> None:
    del named(release, "NetworkPolicy", "good-valkey")["spec"]["ingress"][0]["from"][0]


@plants("what_one_side_may_send_the_other_takes")
def this_side_may_not_send(release: Release) -> None:
    named(release, "NetworkPolicy", "good-inference")["spec"]["egress"] = []


@plants("what_one_side_may_send_the_other_takes")
def the_port_is_the_service_s_and_not_the_pod_s(release: Release) -> None:
    named(release, "NetworkPolicy", "good-inference")["spec"]["egress"][0]["ports"][0]["port"] = 16379


@plants("a_port_of_a_rule_is_open")
def a_port_is_let_in_that_nobody_listens_on(release: Release) -> None:
    named(release, "NetworkPolicy", "good-router")["spec"]["ingress"][0]["ports"][0]["port"] = "http"


@plants("a_service_can_be_reached")
def a_service_s_pods_let_nobody_in(release: Release) -> None:
    named(release, "NetworkPolicy", "good-router")["spec"]["ingress"] = []


# Availability.


@plants("a_replicated_workload_has_a_budget")
def a_replicated_workload_has_none(release: Release) -> Release:
    return without(release, "PodDisruptionBudget", "good-router")


@plants("a_replicated_workload_has_a_budget")
def no_node_can_be_drained(release: Release) -> None:
    named(release, "PodDisruptionBudget", "good-router")["spec"] |= {"maxUnavailable": 0}


@plants("a_replicated_workload_has_a_budget")
def a_budget_takes_in_another_s_pods(release: Release) -> None:
    del named(release, "PodDisruptionBudget", "good-router")["spec"]["selector"]["matchLabels"][
        "app.kubernetes.io/component"
    ]


@plants("a_replicated_workload_is_spread")
def it_is_spread_over_nodes_alone(release: Release) -> None:
    del pod(release)["topologySpreadConstraints"][1]


@plants("a_replicated_workload_is_spread")
def it_is_spread_by_another_s_labels(release: Release) -> None:
    constraint = pod(release)["topologySpreadConstraints"][0]
    constraint["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] = "scorer"


@plants("a_pod_has_time_to_leave")
def it_has_kubernetes_default(release: Release) -> None:
    del pod(release)["terminationGracePeriodSeconds"]


@plants("a_pod_has_time_to_leave")
def the_pause_before_the_signal_is_not_counted(release: Release) -> None:
    container(release)["lifecycle"] = {"preStop": {"sleep": {"seconds": 60}}}


@plants("a_pod_that_starts_hears_that_it_is_to_leave")
def its_process_is_the_first(release: Release) -> None:
    del pod(release)["shareProcessNamespace"]


@plants("a_store_is_one_pod")
def the_old_store_is_still_there(release: Release) -> None:
    del named(release, "Deployment", "good-valkey")["spec"]["strategy"]


@plants("an_update_takes_no_service_away")
def half_of_it_is_away(release: Release) -> None:
    named(release, "Deployment", "good-router")["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": "50%"}}


# Secrets.


@plants("a_secret_stands_in_no_variable")
def a_password_is_written_out(release: Release) -> None:
    container(release)["env"].append({"name": "PROCTOR_GATEWAY_TOKEN", "value": "hunter2hunter2hunter2"})


@plants("a_secret_stands_in_no_variable")
def a_url_has_its_password(release: Release) -> None:
    container(release)["env"][0] = {"name": "PROCTOR_BROKER_URL", "value": "redis://:drawn@good-valkey:6379/0"}


@plants("a_secret_stands_in_no_variable")
def a_url_has_its_password_in_the_settings(release: Release) -> None:
    data = named(release, "ConfigMap", "good-settings")["data"]
    data["PROCTOR_RECORDS_URL"] = "postgresql://proctor:drawn@db/proctor"


@plants("a_secret_stands_in_no_argument")
def a_password_is_an_argument(release: Release) -> None:
    container(release, "valkey")["args"] = ["valkey-server --requirepass drawn"]


@plants("a_secret_stands_in_no_config_map")
def a_key_is_in_the_settings(release: Release) -> None:
    data = named(release, "ConfigMap", "good-settings")["data"]
    data["key.pem"] = "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----"


@plants("a_secret_is_mounted_for_its_owner")
def everybody_reads_a_secret(release: Release) -> None:
    del pod(release, "valkey")["volumes"][2]["secret"]["defaultMode"]


# References.


@plants("a_workload_selects_its_own_pods")
def two_workloads_take_in_the_same_pods(release: Release) -> None:
    del named(release, "Deployment", "good-router")["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]


@plants("a_workload_selects_its_own_pods")
def a_version_is_selected(release: Release) -> None:
    deployment = named(release, "Deployment", "good-router")["spec"]
    deployment["selector"]["matchLabels"]["app.kubernetes.io/version"] = "1"
    deployment["template"]["metadata"]["labels"]["app.kubernetes.io/version"] = "1"


@plants("a_service_leads_to_pods")
def a_service_leads_nowhere(release: Release) -> None:
    named(release, "Service", "good-router")["spec"]["selector"]["app.kubernetes.io/component"] = "gateway"


@plants("a_service_leads_to_pods")
def a_service_leads_to_a_port_that_is_not_there(release: Release) -> None:
    named(release, "Service", "good-router")["spec"]["ports"][0]["targetPort"] = 8080


@plants("a_backend_is_a_service")
def an_ingress_leads_nowhere(release: Release) -> Release:
    backend = {"service": {"name": "good-gateway", "port": {"name": "http"}}}
    rules = [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]
    return with_object(release, "networking.k8s.io/v1", "Ingress", "good", spec={"rules": rules})


@plants("a_backend_is_a_service")
def a_route_leads_to_a_port_that_is_not_there(release: Release) -> Release:
    rules = [{"backendRefs": [{"name": "good-router", "port": 8080}]}]
    return with_object(release, "gateway.networking.k8s.io/v1", "HTTPRoute", "good", spec={"rules": rules})


@plants("what_a_pod_takes_in_is_there")
def a_secret_is_missing(release: Release) -> Release:
    return without(release, "Secret", "good-valkey")


@plants("what_a_pod_takes_in_is_there")
def a_key_of_a_secret_is_missing(release: Release) -> None:
    del named(release, "Secret", "good-valkey")["stringData"]["broker-url"]


@plants("a_mount_has_a_volume")
def a_mount_has_none(release: Release) -> None:
    container(release)["volumeMounts"].append({"name": "data", "mountPath": "/data"})


@plants("a_mount_has_a_volume")
def a_volume_is_mounted_nowhere(release: Release) -> None:
    pod(release)["volumes"].append({"name": "data", "emptyDir": {"sizeLimit": "1Mi"}})


@plants("what_is_made_is_used")
def a_config_map_is_left_over(release: Release) -> Release:
    return with_object(release, "v1", "ConfigMap", "good-former", data={})


# Scaling.


@plants("a_scaler_has_a_target")
def it_scales_nothing(release: Release) -> None:
    named(release, "ScaledObject", "good-inference")["spec"]["scaleTargetRef"]["name"] = "good-worker"


@plants("a_workload_has_one_scaler")
def keda_and_an_autoscaler_scale_one(release: Release) -> Release:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "good-inference"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}
    return with_object(release, "autoscaling/v2", "HorizontalPodAutoscaler", "good-inference", spec=spec)


@plants("a_scaled_workload_leaves_its_replicas_open")
def an_upgrade_sets_it_back(release: Release) -> None:
    named(release, "Deployment", "good-inference")["spec"]["replicas"] = 1


@plants("a_scaled_workload_leaves_its_replicas_open")
def nobody_says_how_many(release: Release) -> None:
    del named(release, "Deployment", "good-router")["spec"]["replicas"]


@plants("a_scaler_has_bounds")
def it_falls_back_to_more_than_it_may(release: Release) -> None:
    named(release, "ScaledObject", "good-inference")["spec"]["fallback"]["replicas"] = 20


@plants("a_scaler_has_bounds")
def it_has_nothing_to_fall_back_to(release: Release) -> None:
    del named(release, "ScaledObject", "good-inference")["spec"]["fallback"]


@plants("a_scaler_goes_down_slowly")
def it_goes_down_at_once(release: Release) -> None:
    del named(release, "ScaledObject", "good-inference")["spec"]["advanced"]


@plants("a_trigger_does_not_take_silence_for_idleness")
def silence_is_idleness(release: Release) -> None:
    metadata = named(release, "ScaledObject", "good-inference")["spec"]["triggers"][0]["metadata"]
    del metadata["ignoreNullValues"]


@plants("a_trigger_does_not_take_silence_for_idleness")
def a_list_is_measured(release: Release) -> None:
    triggers = named(release, "ScaledObject", "good-inference")["spec"]["triggers"]
    triggers.append({"type": "redis", "metadata": {"listName": "inference", "listLength": "8"}})


@plants("without_keda_there_is_nothing_of_it")
def the_cluster_has_no_keda(release: Release) -> Release:
    return replace(release, apis=())


# Objects.


@plants("an_object_has_a_name_of_its_own")
def there_are_two_of_one_name(release: Release) -> Release:
    return replace(release, objects=(*release.objects, named(release, "Service", "good-router")))


@plants("an_object_has_a_name_of_its_own")
def a_name_is_too_long(release: Release) -> None:
    named(release, "Service", "good-router")["metadata"]["name"] = "r" * 64


@plants("an_object_has_labels")
def it_does_not_say_its_version(release: Release) -> None:
    del named(release, "Service", "good-router")["metadata"]["labels"]["app.kubernetes.io/version"]


@plants("an_object_has_labels")
def its_component_is_unheard_of(release: Release) -> None:
    named(release, "Job", "good-migrate")["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"] = "x"


@plants("an_object_stands_in_the_release_s_namespace")
def it_stands_in_another_namespace(release: Release) -> None:
    named(release, "Service", "good-router")["metadata"]["namespace"] = "kube-system"


@plants("a_hook_can_run")
def a_hook_finds_its_former_self(release: Release) -> None:
    del named(release, "Job", "good-migrate")["metadata"]["annotations"]["helm.sh/hook-delete-policy"]


@plants("a_hook_can_run")
def a_weight_is_a_number(release: Release) -> None:
    named(release, "Job", "good-migrate")["metadata"]["annotations"]["helm.sh/hook-weight"] = 5


@plants("a_hook_ends")
def a_hook_may_hang(release: Release) -> None:
    del named(release, "Job", "good-migrate")["spec"]["activeDeadlineSeconds"]


@plants("a_hook_needs_nothing_that_comes_later")
def its_account_comes_later(release: Release) -> None:
    del named(release, "ServiceAccount", "good-migrate")["metadata"]["annotations"]


@plants("a_hook_needs_nothing_that_comes_later")
def its_account_comes_at_the_same_time(release: Release) -> None:
    named(release, "ServiceAccount", "good-migrate")["metadata"]["annotations"]["helm.sh/hook-weight"] = "0"


# Program.


@plants("a_variable_is_one_that_is_read")
def a_variable_is_misspelt(release: Release) -> None:
    named(release, "ConfigMap", "good-settings")["data"]["PROCTOR_GRACE_SECONDS"] = "45"


@plants("an_argument_is_one_that_is_taken")
def an_option_is_misspelt(release: Release) -> None:
    container(release)["args"].append("--metric-port=9090")


@plants("an_argument_is_one_that_is_taken")
def a_script_gives_a_command_that_is_not_there(release: Release) -> None:
    container(release, "migrate").update(command=["sh", "-c"], args=["set -e\ntrue && proctor records upgrade\n"])


@plants("a_worker_is_of_its_service")
def it_runs_another_service(release: Release) -> None:
    container(release)["args"][1] = "scorer"


@plants("a_metric_is_one_that_is_served")
def a_metric_is_misspelt(release: Release) -> None:
    metadata = named(release, "ScaledObject", "good-inference")["spec"]["triggers"][0]["metadata"]
    metadata["query"] = "sum(proctor_audit)"


@plants("a_queue_is_one_that_is_consumed")
def a_queue_is_misspelt(release: Release) -> None:
    triggers = named(release, "ScaledObject", "good-inference")["spec"]["triggers"]
    triggers.append({"type": "redis", "metadata": {"listName": "inference.urgent", "listLength": "8"}})
