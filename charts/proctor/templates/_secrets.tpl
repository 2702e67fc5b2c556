{{/* Secrets of a trial: generated once, then found in the cluster and kept. */}}

{{/* Annotations of what stays after an uninstall, where the values say so. */}}
{{- define "proctor.kept" -}}
{{- if eq .Values.retention.onUninstall "keep" }}
annotations:
  helm.sh/resource-policy: keep
{{- end }}
{{- end -}}

{{/* One key of a Secret that is in the cluster, decoded; else what is given. Takes root, name, key and otherwise. */}}
{{- define "proctor.keptValue" -}}
{{- $found := lookup "v1" "Secret" .root.Release.Namespace .name -}}
{{- if and $found $found.data (hasKey $found.data .key) -}}
{{- get $found.data .key | b64dec -}}
{{- else -}}
{{- if .root.Values.requireExistingSecrets }}{{ fail (printf "requireExistingSecrets is set and %s would be generated: name a Secret of your own" .name) }}{{ end -}}
{{- .otherwise -}}
{{- end -}}
{{- end -}}

{{/* A generated Secret's head. Takes root, component and suffix. */}}
{{- define "proctor.secret" -}}
apiVersion: v1
kind: Secret
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
  {{- include "proctor.kept" .root | nindent 2 }}
type: Opaque
{{- end -}}
