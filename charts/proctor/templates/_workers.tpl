{{/* Workers: what consumes a queue. */}}

{{/* Whether a component is scaled, and not by the chart's number of replicas: `keda`, `hpa` or nothing. Takes root and autoscaling. */}}
{{- define "proctor.scaledBy" -}}
{{- $mode := .root.Values.autoscaling.mode -}}
{{- if and .autoscaling .autoscaling.enabled (ne $mode "none") -}}
{{- if eq $mode "auto" }}{{ ternary "keda" "hpa" (.root.Capabilities.APIVersions.Has "keda.sh/v1alpha1") }}{{ else }}{{ $mode }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Everything of a worker: account, Deployment, budget and scaling. Takes root and component. */}}
{{- define "proctor.worker" -}}
{{- $root := .root -}}
{{- $values := get $root.Values .component -}}
{{- $one := dict "root" $root "component" .component "values" $values -}}
{{ include "proctor.serviceAccount" $one }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "proctor.metadata" $one | nindent 2 }}
spec:
  {{- if not (include "proctor.scaledBy" (dict "root" $root "autoscaling" $values.autoscaling)) }}
  replicas: {{ $values.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      {{- include "proctor.selector" $one | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      {{- include "proctor.podMetadata" (mergeOverwrite (dict "checksum" (include "proctor.checksum" $root)) $one) | nindent 6 }}
    spec:
      {{- $args := list "worker" .component "--log-level" $root.Values.log.level "--concurrency" ($values.concurrency | toString) "--metrics-host" "0.0.0.0" "--metrics-port" "9090" }}
      {{- $more := dict "args" $args "ports" (include "proctor.workerPorts" .) "probes" (include "proctor.workerProbes" $root) "seconds" (include "proctor.workerSeconds" $root) }}
      {{- include "proctor.podSpec" (mergeOverwrite $more $one) | nindent 6 }}
---
{{ include "proctor.podDisruptionBudget" $one }}
{{- include "proctor.workerScaling" $one }}
{{- end -}}

{{- define "proctor.workerPorts" -}}
- name: metrics
  containerPort: 9090
  protocol: TCP
{{- end -}}

{{/*
Probes of progress. A worker that answers may still be stuck: /livez is 503 when there is work and none was finished for
PROCTOR_STALL_S. /readyz is 503 while it does not consume, or its broker or stores do not answer; nothing is sent to a
worker, so that only tells who looks, and holds up a rollout.
*/}}
{{- define "proctor.workerProbes" -}}
startupProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 90
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}
