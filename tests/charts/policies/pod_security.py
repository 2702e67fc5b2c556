"""The restricted profile of Kubernetes' Pod Security Standards, rule by rule, and what comes on top of it.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.charts.manifests import Container, Pod, pods
from tests.charts.policies.policy import policy
from tests.charts.rendering import Release

#: Of the restricted profile, "Volume Types".
_VOLUMES: Final = frozenset(
    {
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret",
    }
)  # fmt: skip
#: Of the baseline profile, "Sysctls".
_SAFE_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    }
)  # fmt: skip
_SELINUX_TYPES: Final = frozenset(
    {None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
)
_CONFINED: Final = frozenset({"RuntimeDefault", "Localhost"})
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


@policy
def a_pod_shares_nothing_with_its_host(release: Release) -> Iterator[str]:
    """Restricted profile: no namespaces, paths, ports or kernel settings of the node."""
    for pod in pods(release.objects):
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(field):
                yield f"{pod.name}: {field}"
        for one in _security(pod.spec).get("sysctls") or ():
            if one["name"] not in _SAFE_SYSCTLS:
                yield f"{pod.name}: sysctl {one['name']}"
        for container in pod.containers:
            for port in container.ports:
                if port.get("hostPort"):
                    yield f"{container.name}: hostPort {port['hostPort']}"
            for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
                for way in ("httpGet", "tcpSocket"):
                    if ((container.spec.get(probe) or {}).get(way) or {}).get("host"):
                        yield f"{container.name}: {probe} names a host"


@policy
def a_pod_has_volumes_that_the_profile_allows(release: Release) -> Iterator[str]:
    """Restricted profile: volumes are of the kinds that reach nothing of the node."""
    for pod in pods(release.objects):
        for volume in pod.volumes:
            for kind in set(volume) - {"name"} - _VOLUMES:
                yield f"{pod.name}: volume {volume.get('name')} is a {kind}"


@policy
def a_container_has_no_privilege(release: Release) -> Iterator[str]:
    """Restricted profile: not privileged, cannot become so, and every capability is dropped."""
    for container in _containers(release):
        said = _security(container.spec)
        capabilities = said.get("capabilities") or {}
        if said.get("privileged") or (said.get("windowsOptions") or {}).get("hostProcess"):
            yield f"{container.name}: privileged"
        if said.get("allowPrivilegeEscalation") is not False:
            yield f"{container.name}: allowPrivilegeEscalation is not false"
        if "ALL" not in (capabilities.get("drop") or []):
            yield f"{container.name}: does not drop ALL capabilities"
        if added := set(capabilities.get("add") or []) - {"NET_BIND_SERVICE"}:
            yield f"{container.name}: adds {', '.join(sorted(added))}"
        if said.get("procMount", "Default") != "Default":
            yield f"{container.name}: procMount {said['procMount']}"


@policy
def a_container_runs_as_nobody_special(release: Release) -> Iterator[str]:
    """Restricted profile: not as root, whatever the image says."""
    for container in _containers(release):
        if _effective(container, "runAsNonRoot") is not True:
            yield f"{container.name}: runAsNonRoot is not true"
        for said in (_security(container.pod.spec), _security(container.spec)):
            if said.get("runAsUser") == 0:
                yield f"{container.name}: runAsUser is 0"


@policy
def a_container_is_confined(release: Release) -> Iterator[str]:
    """Restricted profile: the runtime's seccomp profile, and no weaker AppArmor or SELinux."""
    for container in _containers(release):
        seccomp = (_effective(container, "seccompProfile") or {}).get("type")
        if seccomp not in _CONFINED:
            yield f"{container.name}: seccomp profile {seccomp}"
        for said in (_security(container.pod.spec), _security(container.spec)):
            selinux = said.get("seLinuxOptions") or {}
            if selinux.get("type") not in _SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
                yield f"{container.name}: SELinux options {selinux}"
            if (said.get("appArmorProfile") or {}).get("type", "RuntimeDefault") not in _CONFINED:
                yield f"{container.name}: AppArmor {said['appArmorProfile']['type']}"
        for name, value in (container.pod.template.get("metadata", {}).get("annotations") or {}).items():
            if name.startswith(_APPARMOR) and value == "unconfined":
                yield f"{container.name}: AppArmor unconfined"


@policy
def a_container_writes_where_it_is_told(release: Release) -> Iterator[str]:
    """Beyond the profile: the root file system is read-only, and a volume for scratch says how large it may grow."""
    for container in _containers(release):
        if _security(container.spec).get("readOnlyRootFilesystem") is not True:
            yield f"{container.name}: can write to its root file system"
    for pod in pods(release.objects):
        for volume in pod.volumes:
            scratch = volume.get("emptyDir")
            if scratch is not None and not scratch.get("sizeLimit"):
                yield f"{pod.name}: volume {volume.get('name')} may fill the node's disk: no sizeLimit"


def _containers(release: Release) -> Iterator[Container]:
    return (container for pod in pods(release.objects) for container in pod.containers)


def _security(spec: dict[str, Any]) -> dict[str, Any]:
    return spec.get("securityContext") or {}


def _effective(container: Container, field: str) -> Any:
    own: Any = _security(container.spec).get(field)
    return _of_pod(container.pod, field) if own is None else own


def _of_pod(pod: Pod, field: str) -> Any:
    return _security(pod.spec).get(field)
