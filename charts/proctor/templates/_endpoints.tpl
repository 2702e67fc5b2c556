{{/* PROCTOR_ENDPOINTS: each pool as docs/settings.md has an endpoint. */}}
{{- define "proctor.endpoints" -}}
{{- $root := . -}}
{{- $found := dict -}}
{{- range .Values.pools -}}
{{- $one := dict -}}
{{- with .url }}{{ $_ := set $one "url" . }}{{ end -}}
{{- with .replicas }}{{ $_ := set $one "replicas" . }}{{ end -}}
{{- with .discovery }}{{ $_ := set $one "discovery" . }}{{ end -}}
{{- if .triton -}}
{{- $service := printf "%s-triton-%s" (include "proctor.fullname" $root) .name -}}
{{- if eq (.triton.discovery | default "endpointSlices") "dns" -}}
{{- $_ := set $one "discovery" (dict "kind" "dns" "url" (printf "grpc://%s.%s.svc:8001" $service $root.Release.Namespace)) -}}
{{- else -}}
{{- $_ := set $one "discovery" (dict "kind" "endpoint_slices" "namespace" $root.Release.Namespace "service" $service "port" "grpc") -}}
{{- end -}}
{{- end -}}
{{- $pool := . -}}
{{- range $key, $name := dict "balance" "balance" "backend" "backend" "maxInFlight" "max_in_flight" "private" "private" "inputPricePerMillion" "input_price_per_million" "outputPricePerMillion" "output_price_per_million" -}}
{{- if hasKey $pool $key }}{{ $_ := set $one $name (get $pool $key) }}{{ end -}}
{{- end -}}
{{- $_ := set $found (.id | default .name) $one -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{/* Namespaces whose EndpointSlices the inference workers watch, as a JSON list. */}}
{{- define "proctor.watchedNamespaces" -}}
{{- $found := list -}}
{{- range (include "proctor.endpoints" . | fromJson) -}}
{{- if .discovery }}{{ if eq .discovery.kind "endpoint_slices" }}{{ $found = append $found .discovery.namespace }}{{ end }}{{ end -}}
{{- end -}}
{{- $found | uniq | toJson -}}
{{- end -}}
