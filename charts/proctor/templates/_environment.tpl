{{/* What services are told, and where it lies in their pods. */}}

{{/* The parts of a deployment that a component uses; its environment, volumes and egress follow from them. */}}
{{- define "proctor.needs" -}}
router: [redis, records, artifacts, signing, notify]
perturbation: [redis, records, artifacts, models]
inference: [redis, artifacts, models, keys]
scorer: [redis, records, artifacts, signing, notify]
registry: [redis, records, artifacts, registry{{ if eq .Values.admission.mode "policy" }}, signing{{ end }}]
notifier: [redis, records, artifacts, notify, notifications]
gateway: [redis, records, artifacts, registry, signing, callers, notify, webhooks]
subscribe: [registry, webhooks]
migrate: [records]
{{- end -}}

{{- define "proctor.secretName.redis" -}}
{{- if .Values.valkey.enabled }}{{ .Values.valkey.existingSecret | default (printf "%s-valkey" (include "proctor.fullname" .)) }}{{ else }}{{ .Values.redis.existingSecret }}{{ end -}}
{{- end -}}
{{- define "proctor.secretName.records" -}}
{{- if .Values.postgresql.enabled }}{{ .Values.postgresql.existingSecret | default (printf "%s-postgresql" (include "proctor.fullname" .)) }}{{ else }}{{ .Values.records.existingSecret }}{{ end -}}
{{- end -}}
{{- define "proctor.secretName.registry" -}}
{{- if .Values.mlflow.enabled }}{{ .Values.mlflow.existingSecret | default (printf "%s-mlflow" (include "proctor.fullname" .)) }}{{ else }}{{ .Values.registry.existingSecret }}{{ end -}}
{{- end -}}
{{- define "proctor.secretName.gateway" -}}
{{- .Values.gateway.existingSecret | default (printf "%s-gateway" (include "proctor.fullname" .)) -}}
{{- end -}}
{{- define "proctor.secretName.signing" -}}
{{- .Values.signing.existingSecret | default (printf "%s-signing" (include "proctor.fullname" .)) -}}
{{- end -}}
{{- define "proctor.secretName.webhooks" -}}
{{- if .Values.gateway.triggers.webhooksSecret }}{{ .Values.gateway.triggers.webhooksSecret }}{{ else if .Values.mlflow.enabled }}{{ include "proctor.fullname" . }}-webhooks{{ end -}}
{{- end -}}

{{/* Name of the Secret with the authority of the Redis or PostgreSQL in use; empty without TLS. */}}
{{- define "proctor.caSecret.redis" -}}
{{- if .Values.valkey.enabled }}{{ .Values.valkey.tls.existingSecret }}{{ else }}{{ .Values.redis.caSecret }}{{ end -}}
{{- end -}}
{{- define "proctor.caSecret.records" -}}
{{- if .Values.postgresql.enabled }}{{ .Values.postgresql.tls.existingSecret }}{{ else }}{{ .Values.records.caSecret }}{{ end -}}
{{- end -}}

{{/* Address of the model registry, without a password; empty where there is none. */}}
{{- define "proctor.registryAddress" -}}
{{- if .Values.mlflow.enabled }}http://{{ include "proctor.fullname" . }}-mlflow.{{ .Release.Namespace }}.svc:5000{{ else }}{{ .Values.registry.uri }}{{ end -}}
{{- end -}}

{{/* What all services are told and is no secret: the ConfigMap that every pod takes its environment from. */}}
{{- define "proctor.commonEnvironment" -}}
{{- $t := .Values.timing -}}
{{- $said := dict
  "PROCTOR_HOME" "/var/lib/proctor"
  "PROCTOR_RECORDS_MIGRATE" "never"
  "PROCTOR_LEDGER_CHECK" .Values.redis.ledgerCheck
  "PROCTOR_LOG_FORMAT" .Values.log.format
  "PROCTOR_ENDPOINTS" "@/etc/proctor/endpoints.json"
  "PROCTOR_OTHER_ENDPOINTS" .Values.endpoints.others
  "PROCTOR_HUB_DATASETS" (join "," .Values.endpoints.hubDatasets)
  "PROCTOR_RECONCILE_INTERVAL_S" $t.reconcileIntervalSeconds
  "PROCTOR_LEASE_S" $t.leaseSeconds
  "PROCTOR_VISIBILITY_TIMEOUT_S" $t.visibilityTimeoutSeconds
  "PROCTOR_ANSWER_TIME_S" $t.answerTimeSeconds
  "PROCTOR_OUTAGE_S" $t.outageSeconds
  "PROCTOR_PRESENCE_S" $t.presenceSeconds
  "PROCTOR_STALL_S" $t.stallSeconds
  "PROCTOR_GRACE_S" .Values.shutdown.graceSeconds
-}}
{{- /* The trial's PostgreSQL starts beside its users; one of your own is migrated before they start. */ -}}
{{- if .Values.postgresql.enabled }}{{ $_ := set $said "PROCTOR_RECORDS_WAIT_S" .Values.migrations.timeoutSeconds }}{{ end -}}
{{- if eq .Values.artifacts.kind "s3" -}}
{{- $_ := set $said "PROCTOR_ARTIFACTS" .Values.artifacts.s3.uri -}}
{{- with .Values.artifacts.s3.endpointUrl }}{{ $_ := set $said "PROCTOR_S3_ENDPOINT_URL" . }}{{ end -}}
{{- with .Values.artifacts.s3.region }}{{ $_ := set $said "AWS_REGION" . }}{{ end -}}
{{- else -}}
{{- $_ := set $said "PROCTOR_ARTIFACTS" "/var/lib/proctor-artifacts/store" -}}
{{- end -}}
{{- if .Values.ceilings }}{{ $_ := set $said "PROCTOR_CEILINGS" "@/etc/proctor/ceilings.json" }}{{ end -}}
{{- if .Values.privateBenchmarks }}{{ $_ := set $said "PROCTOR_PRIVATE_BENCHMARKS" "@/etc/proctor/private-benchmarks.json" }}{{ end -}}
{{- if not (kindIs "invalid" .Values.retentionDays) }}{{ $_ := set $said "PROCTOR_RETENTION_DAYS" .Values.retentionDays }}{{ end -}}
{{- with .Values.endpoints.encoder }}{{ $_ := set $said "PROCTOR_ENCODER" . }}{{ end -}}
{{- with .Values.gateway.dashboardUrl }}{{ $_ := set $said "PROCTOR_DASHBOARD_URL" . }}{{ end -}}
{{- with .Values.benchmarks.existingClaim }}{{ $_ := set $said "PROCTOR_BENCHMARKS" "/var/lib/proctor-benchmarks" }}{{ end -}}
{{- with .Values.corpora.existingClaim }}{{ $_ := set $said "PROCTOR_CORPORA" "/var/lib/proctor-corpora" }}{{ end -}}
{{- /* Every service is to know whether there is a registry; the password is for those alone that call it. */ -}}
{{- with include "proctor.registryAddress" . }}{{ $_ := set $said "PROCTOR_REGISTRY_URI" . }}{{ end -}}
{{- range $name, $value := .Values.environment }}{{ $_ := set $said $name $value }}{{ end -}}
{{- range $name, $value := $said }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* Files that all services are given, below /etc/proctor. */}}
{{- define "proctor.commonFiles" -}}
endpoints.json: {{ include "proctor.endpoints" . | quote }}
{{- with .Values.ceilings }}
ceilings.json: {{ toJson . | quote }}
{{- end }}
{{- with .Values.privateBenchmarks }}
private-benchmarks.json: {{ toJson . | quote }}
{{- end }}
{{- end -}}

{{/* One variable from a Secret. Takes name, secret and key. */}}
{{- define "proctor.fromSecret" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end -}}

{{/* Variables of one component: secrets it needs, and what is its own. Takes root and component. */}}
{{- define "proctor.variables" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $needs := get (include "proctor.needs" $root | fromYaml) .component -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- if has "redis" $needs }}
{{- $secret := include "proctor.secretName.redis" $root }}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_BROKER_URL" "secret" $secret "key" (ternary "broker-url" $values.redis.brokerUrlKey $values.valkey.enabled)) }}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_LEDGER_URL" "secret" $secret "key" (ternary "ledger-url" $values.redis.ledgerUrlKey $values.valkey.enabled)) }}
{{- end }}
{{- if has "records" $needs }}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_RECORDS_URL" "secret" (include "proctor.secretName.records" $root) "key" (ternary "records-url" $values.records.urlKey $values.postgresql.enabled)) }}
{{- end }}
{{- if and (has "registry" $needs) (include "proctor.secretName.registry" $root) }}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_REGISTRY_URI" "secret" (include "proctor.secretName.registry" $root) "key" (ternary "registry-uri" $values.registry.uriKey $values.mlflow.enabled)) }}
{{- end }}
{{- if and (has "artifacts" $needs) (eq $values.artifacts.kind "s3") $values.artifacts.s3.existingSecret }}
{{ include "proctor.fromSecret" (dict "name" "AWS_ACCESS_KEY_ID" "secret" $values.artifacts.s3.existingSecret "key" "access-key-id") }}
{{ include "proctor.fromSecret" (dict "name" "AWS_SECRET_ACCESS_KEY" "secret" $values.artifacts.s3.existingSecret "key" "secret-access-key") }}
{{- end }}
{{- if and $values.endpoints.hubTokenSecret (ne .component "migrate") }}
{{ include "proctor.fromSecret" (dict "name" "HF_TOKEN" "secret" $values.endpoints.hubTokenSecret "key" "token") }}
{{- end }}
{{- if has "signing" $needs }}
- name: PROCTOR_SIGNING_KEY
  value: /var/run/secrets/proctor/signing/signing-key.pem
{{- end }}
{{- if and (has "keys" $needs) $values.inference.apiKeysSecret }}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_API_KEYS" "secret" $values.inference.apiKeysSecret "key" "api-keys.json") }}
{{- end }}
{{- if and (has "notify" $needs) $values.notifier.enabled }}
- name: PROCTOR_NOTIFY
  value: "@/var/run/secrets/proctor/notify/notify.json"
{{- end }}
{{- if has "callers" $needs }}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_GATEWAY_TOKEN" "secret" (include "proctor.secretName.gateway" $root) "key" "token") }}
{{- if $values.gateway.tokensSecret }}
- name: PROCTOR_GATEWAY_TOKENS
  value: "@/var/run/secrets/proctor/callers/tokens.json"
{{- end }}
{{- if $values.gateway.oidcSecret }}
- name: PROCTOR_GATEWAY_OIDC
  value: "@/var/run/secrets/proctor/oidc/oidc.json"
{{- end }}
{{- end }}
{{- if and (has "webhooks" $needs) $values.gateway.triggers.enabled (include "proctor.secretName.webhooks" $root) }}
{{- range $registry, $variable := dict "mlflow" "PROCTOR_GATEWAY_MLFLOW_SECRETS" "huggingface" "PROCTOR_GATEWAY_HUGGINGFACE_SECRETS" }}
- name: {{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ include "proctor.secretName.webhooks" $root }}
      key: {{ $registry }}
      optional: true
{{- end }}
{{- end }}
{{- if and (has .component (list "router" "gateway")) $values.leaderElection.enabled }}
- name: PROCTOR_LEADER_LEASE
  value: {{ $root.Release.Namespace }}/{{ include "proctor.fullname" $root }}-{{ .component }}
{{- end }}
{{- if and (eq .component "registry") (eq $values.admission.mode "policy") }}
- name: PROCTOR_ADMISSION_APPROVALS
  value: {{ $root.Release.Namespace }}/{{ include "proctor.fullname" $root }}-approvals
- name: PROCTOR_ADMISSION_STALE_S
  value: {{ $values.admission.staleSeconds | toString | quote }}
{{- end }}
{{- if and (eq .component "registry") $values.registry.events.enabled }}
- name: PROCTOR_KUBERNETES_EVENTS
  value: {{ join "," $values.registry.events.namespaces | default "1" | quote }}
{{- end }}
{{- range $name, $value := (get $values .component | default dict).environment }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* Volumes of one component, and where they are mounted: a YAML object with both. Takes root and component. */}}
{{- define "proctor.storage" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $needs := get (include "proctor.needs" $root | fromYaml) .component -}}
{{- $volumes := list
  (dict "name" "tmp" "emptyDir" (dict "sizeLimit" $values.pods.tmpSize))
  (dict "name" "home" "emptyDir" (dict "sizeLimit" $values.pods.homeSize))
  (dict "name" "config" "configMap" (dict "name" (printf "%s-config" (include "proctor.fullname" $root)) "defaultMode" 0444)) -}}
{{- if eq .component "migrate" }}{{ $volumes = slice $volumes 0 2 }}{{ end -}}
{{- $places := dict "tmp" "/tmp" "home" "/var/lib/proctor" "config" "/etc/proctor" -}}
{{- if and (has "artifacts" $needs) (eq $values.artifacts.kind "pvc") -}}
{{- $claim := $values.artifacts.pvc.existingClaim | default (printf "%s-artifacts" (include "proctor.fullname" $root)) -}}
{{- $volumes = append $volumes (dict "name" "artifacts" "persistentVolumeClaim" (dict "claimName" $claim)) -}}
{{- $_ := set $places "artifacts" "/var/lib/proctor-artifacts" -}}
{{- end -}}
{{- if and $values.benchmarks.existingClaim (ne .component "migrate") -}}
{{- $volumes = append $volumes (dict "name" "benchmarks" "persistentVolumeClaim" (dict "claimName" $values.benchmarks.existingClaim "readOnly" true)) -}}
{{- $_ := set $places "benchmarks" "/var/lib/proctor-benchmarks" -}}
{{- end -}}
{{- if and $values.corpora.existingClaim (has .component (list "perturbation" "gateway")) -}}
{{- $volumes = append $volumes (dict "name" "corpora" "persistentVolumeClaim" (dict "claimName" $values.corpora.existingClaim "readOnly" true)) -}}
{{- $_ := set $places "corpora" "/var/lib/proctor-corpora" -}}
{{- end -}}
{{- $secrets := dict -}}
{{- if and (has "redis" $needs) (include "proctor.caSecret.redis" $root) }}{{ $_ := set $secrets "redis-ca" (dict "name" (include "proctor.caSecret.redis" $root) "keys" (list "ca.crt")) }}{{ end -}}
{{- if and (has "records" $needs) (include "proctor.caSecret.records" $root) }}{{ $_ := set $secrets "records-ca" (dict "name" (include "proctor.caSecret.records" $root) "keys" (list "ca.crt")) }}{{ end -}}
{{- if has "signing" $needs }}{{ $_ := set $secrets "signing" (dict "name" (include "proctor.secretName.signing" $root) "keys" (list "signing-key.pem")) }}{{ end -}}
{{- if and (has "notify" $needs) $values.notifier.enabled }}{{ $_ := set $secrets "notify" (dict "name" $values.notifier.existingSecret "keys" (list "notify.json")) }}{{ end -}}
{{- if has "callers" $needs -}}
{{- with $values.gateway.tokensSecret }}{{ $_ := set $secrets "callers" (dict "name" . "keys" (list "tokens.json")) }}{{ end -}}
{{- with $values.gateway.oidcSecret }}{{ $_ := set $secrets "oidc" (dict "name" . "keys" (list "oidc.json")) }}{{ end -}}
{{- with $values.gateway.tls.existingSecret }}{{ $_ := set $secrets "tls" (dict "name" . "keys" (list "tls.crt" "tls.key")) }}{{ end -}}
{{- with $values.gateway.tls.clientCaSecret }}{{ $_ := set $secrets "client-ca" (dict "name" . "keys" (list "ca.crt")) }}{{ end -}}
{{- if $values.gateway.triggers.enabled -}}
{{- $volumes = append $volumes (dict "name" "triggers" "configMap" (dict "name" (printf "%s-triggers" (include "proctor.fullname" $root)) "defaultMode" 0444)) -}}
{{- $_ := set $places "triggers" "/etc/proctor-triggers" -}}
{{- end -}}
{{- end -}}
{{- range $name, $secret := $secrets -}}
{{- $items := list }}{{ range $secret.keys }}{{ $items = append $items (dict "key" . "path" .) }}{{ end -}}
{{- $volumes = append $volumes (dict "name" $name "secret" (dict "secretName" $secret.name "items" $items "defaultMode" 0440)) -}}
{{- $_ := set $places $name (printf "/var/run/secrets/proctor/%s" $name) -}}
{{- end -}}
{{- $mounts := list -}}
{{- range $volumes -}}
{{- $mount := dict "name" .name "mountPath" (get $places .name) -}}
{{- if or .configMap .secret (has .name (list "benchmarks" "corpora")) }}{{ $_ := set $mount "readOnly" true }}{{ end -}}
{{- $mounts = append $mounts $mount -}}
{{- end -}}
{{- toYaml (dict "volumes" $volumes "mounts" $mounts) -}}
{{- end -}}
