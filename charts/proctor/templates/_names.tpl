{{/* Names and labels. */}}

{{- define "proctor.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* What every name of the release begins with: short enough that a component and a pool fit behind it. */}}
{{- define "proctor.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "proctor.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are found; they never change over a release's life. Takes root and component, and a pool. */}}
{{- define "proctor.selector" -}}
app.kubernetes.io/name: {{ include "proctor.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
proctor.dev/pool: {{ . }}
{{- end }}
{{- end -}}

{{/* Labels of an object. Takes root and component, and a pool. */}}
{{- define "proctor.labels" -}}
{{ include "proctor.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: proctor
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* metadata's name, labels and namespace. Takes root, component, a suffix of the name, and a pool. */}}
{{- define "proctor.metadata" -}}
name: {{ include "proctor.fullname" .root }}-{{ .suffix | default .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "proctor.labels" . | nindent 2 }}
{{- end -}}

{{/* An image by its target: a digest where one is given, else the tag. */}}
{{- define "proctor.image" -}}
{{- $image := .root.Values.image -}}
{{- $repository := printf "%s/%s" $image.repository .target -}}
{{- with $image.registry }}{{ $repository = printf "%s/%s" . $repository }}{{ end -}}
{{- $digest := get ($image.digests | default dict) .target -}}
{{- if $digest -}}
{{- printf "%s@%s" $repository $digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* Fails with every contradiction that a schema cannot see. Included once. */}}
{{- define "proctor.check" -}}
{{- $names := list -}}
{{- range $pool := .Values.pools -}}
{{- if has .name $names }}{{ fail (printf "pools: two have the name %q; each is an endpoint id of its own" .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- $places := list -}}
{{- if .url }}{{ $places = append $places "url" }}{{ end -}}
{{- if .replicas }}{{ $places = append $places "replicas" }}{{ end -}}
{{- if .discovery }}{{ $places = append $places "discovery" }}{{ end -}}
{{- if .triton }}{{ $places = append $places "triton" }}{{ end -}}
{{- if ne (len $places) 1 }}{{ fail (printf "pools: %q has %s; give exactly one of url, replicas, discovery and triton" .name (join " and " $places | default "none of them")) }}{{ end -}}
{{- with .triton -}}
{{- with .autoscaling -}}
{{- if and .queueMilliseconds .shardsPerPod }}{{ fail (printf "pools: %q is scaled by queueMilliseconds or by shardsPerPod; give one of them" $pool.name) }}{{ end -}}
{{- $by := include "proctor.tritonScaledBy" (dict "root" $ "values" $pool.triton) -}}
{{- if and (eq $by "keda") (eq (int .min) 0) (not (include "proctor.tritonShardsPerPod" (dict "values" $pool.triton))) }}{{ fail (printf "pools: %q has autoscaling.min 0, and by queue time nothing would wake it: where no server is, none has a queue. Give shardsPerPod, or min 1" $pool.name) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if ne (hasKey . "inputPricePerMillion") (hasKey . "outputPricePerMillion") }}{{ fail (printf "pools: %q has one price; give both, 0 is a price" .name) }}{{ end -}}
{{- end -}}
{{- if and (not .Values.valkey.enabled) (not .Values.redis.existingSecret) }}{{ fail "redis.existingSecret: name the Secret with the URLs of your Redis, or set valkey.enabled" }}{{ end -}}
{{- if and (not .Values.postgresql.enabled) (not .Values.records.existingSecret) }}{{ fail "records.existingSecret: name the Secret with the URL of your PostgreSQL, or set postgresql.enabled" }}{{ end -}}
{{- if and (not .Values.signing.existingSecret) .Values.requireExistingSecrets }}{{ fail "signing.existingSecret: requireExistingSecrets is set, so that no key is generated" }}{{ end -}}
{{- if and (not .Values.gateway.existingSecret) .Values.requireExistingSecrets }}{{ fail "gateway.existingSecret: requireExistingSecrets is set, so that no token is generated" }}{{ end -}}
{{- if and (not .Values.mlflow.enabled) .Values.registry.existingSecret (not .Values.registry.uri) }}{{ fail "registry.uri: give the address without user and password too, for the services that only need to know that there is a registry" }}{{ end -}}
{{- $t := .Values.timing -}}
{{- if not (and (lt (float64 $t.reconcileIntervalSeconds) (float64 $t.leaseSeconds)) (lt (float64 $t.leaseSeconds) (float64 $t.visibilityTimeoutSeconds)) (lt (float64 $t.visibilityTimeoutSeconds) (float64 $t.answerTimeSeconds))) -}}
{{- fail "timing: reconcileIntervalSeconds, leaseSeconds, visibilityTimeoutSeconds and answerTimeSeconds must rise in this order" -}}
{{- end -}}
{{- end -}}
