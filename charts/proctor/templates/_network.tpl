{{/* NetworkPolicies: nothing in, nothing out, but what is named. */}}

{{/* Pods of a component, as a peer. Takes root and component. */}}
{{- define "proctor.peer" -}}
- podSelector:
    matchLabels:
      {{- include "proctor.selector" . | nindent 6 }}
{{- end -}}

{{/* An egress rule to something outside of the release: its peers, or any address, at its ports. */}}
{{- define "proctor.outside" -}}
- ports:
    {{- range .ports }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .peers }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* An egress rule to a component of the release. Takes root, component and port. */}}
{{- define "proctor.inside" -}}
- ports:
    - {port: {{ .port }}, protocol: TCP}
  to:
    {{- include "proctor.peer" . | nindent 4 }}
{{- end -}}

{{- define "proctor.toDns" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
  to:
    - {{- toYaml .Values.networkPolicy.dns | nindent 6 }}
{{- end -}}

{{/* What a component of Proctor's may reach, from what it needs. Takes root and component. */}}
{{- define "proctor.egress" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $external := $values.networkPolicy.external -}}
{{- $needs := get (include "proctor.needs" $root | fromYaml) .component -}}
{{ include "proctor.toDns" $root }}
{{- if has "redis" $needs }}
{{- if $values.valkey.enabled }}
{{ include "proctor.inside" (dict "root" $root "component" "valkey" "port" 6379) }}
{{- else }}
{{ include "proctor.outside" $external.redis }}
{{- end }}
{{- end }}
{{- if has "records" $needs }}
{{- if $values.postgresql.enabled }}
{{ include "proctor.inside" (dict "root" $root "component" "postgresql" "port" 5432) }}
{{- else }}
{{ include "proctor.outside" $external.records }}
{{- end }}
{{- end }}
{{- if has "registry" $needs }}
{{- if $values.mlflow.enabled }}
{{ include "proctor.inside" (dict "root" $root "component" "mlflow" "port" 5000) }}
{{- else if or $values.registry.uri $values.registry.existingSecret }}
{{ include "proctor.outside" $external.registry }}
{{- end }}
{{- end }}
{{- if and (has "artifacts" $needs) (eq $values.artifacts.kind "s3") }}
{{ include "proctor.outside" $external.artifacts }}
{{- end }}
{{- if has "models" $needs }}
{{- $elsewhere := and $values.endpoints.encoder (eq .component "perturbation") }}
{{- if eq .component "inference" }}
{{- $ours := false }}
{{- range $values.pools }}{{ if .triton }}{{ $ours = true }}{{ else }}{{ $elsewhere = true }}{{ end }}{{ end }}
{{- if or $ours }}
{{ include "proctor.inside" (dict "root" $root "component" "triton" "port" 8001) }}
{{ include "proctor.inside" (dict "root" $root "component" "triton" "port" 8002) }}
{{- end }}
{{- end }}
{{- if or $elsewhere (and (eq .component "inference") (ne $values.endpoints.others "none")) }}
{{ include "proctor.outside" $external.models }}
{{- end }}
{{- end }}
{{- if and $values.endpoints.hubDatasets (has .component (list "router" "perturbation" "scorer" "gateway")) }}
{{ include "proctor.outside" $external.hub }}
{{- end }}
{{- if and (has "callers" $needs) $values.gateway.oidcSecret }}
{{ include "proctor.outside" $external.oidc }}
{{- end }}
{{- if has "notifications" $needs }}
{{ include "proctor.outside" $external.notifications }}
{{- end }}
{{- if hasKey $values.environment "OTEL_EXPORTER_OTLP_ENDPOINT" }}
{{ include "proctor.outside" $external.traces }}
{{- end }}
{{- if include "proctor.talksToKubernetes" . }}
{{ include "proctor.outside" $values.networkPolicy.apiServer }}
{{- end }}
{{- with (get $values .component | default dict).extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A rule for who reads a metrics port. Takes root, port, and keda (whether KEDA does). */}}
{{- define "proctor.scraped" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{- if or $policy.scrapers .keda }}
- ports:
    - {port: {{ .port }}, protocol: TCP}
  from:
    {{- with $policy.scrapers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if .keda }}
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: {{ $policy.kedaNamespace }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* Whether KEDA reads work from the router. */}}
{{- define "proctor.kedaReads" -}}
{{- $root := . -}}
{{- if eq .Values.autoscaling.source "router" -}}
{{- range list "inference" "perturbation" "scorer" -}}
{{- if eq (include "proctor.scaledBy" (dict "root" $root "autoscaling" (get $root.Values .).autoscaling)) "keda" }}true{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A policy. Takes root, component, ingress and egress (YAML of rules), and a suffix and a pool. */}}
{{- define "proctor.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  podSelector:
    matchLabels:
      {{- include "proctor.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- with .ingress | trim }}
  ingress:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with .egress | trim }}
  egress:
    {{- . | nindent 4 }}
  {{- end }}
{{- end -}}
