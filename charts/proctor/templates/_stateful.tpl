{{/*
A trial's store: account, headless Service, StatefulSet of one pod with a volume at /data. Takes root, component, values,
port (number), portName, env and probes (YAML), mounts and volumes (lists), args, seconds.
*/}}
{{- define "proctor.store" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "proctor.fullname" $root) .component -}}
{{ include "proctor.serviceAccount" . }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
spec:
  selector:
    {{- include "proctor.selector" . | nindent 4 }}
  ports:
    - {name: {{ .portName }}, port: {{ .port }}, targetPort: {{ .portName }}, protocol: TCP}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
spec:
  serviceName: {{ $name }}
  replicas: 1
  selector:
    matchLabels:
      {{- include "proctor.selector" . | nindent 6 }}
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: {{ ternary "Retain" "Delete" (eq $root.Values.retention.onUninstall "keep") }}
    whenScaled: Retain
  template:
    metadata:
      {{- include "proctor.podMetadata" . | nindent 6 }}
    spec:
      serviceAccountName: {{ $name }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- include "proctor.sharedProcesses" . | nindent 6 }}
      terminationGracePeriodSeconds: {{ .seconds }}
      {{- with $root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      securityContext:
        {{- include "proctor.podSecurity" $root | nindent 8 }}
      {{- include "proctor.placement" . | nindent 6 }}
      containers:
        - name: {{ .component }}
          image: {{ include "proctor.image" (dict "root" $root "target" .component) }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          {{- with .args }}
          args:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          env:
            {{- .env | nindent 12 }}
          ports:
            - {name: {{ .portName }}, containerPort: {{ .port }}, protocol: TCP}
          {{- .probes | nindent 10 }}
          securityContext:
            {{- include "proctor.containerSecurity" $root | nindent 12 }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - {name: data, mountPath: /data}
            - {name: tmp, mountPath: /tmp}
            {{- with .mounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: {{ $root.Values.pods.tmpSize }}
        {{- with .volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumeClaimTemplates:
    - metadata:
        name: data
        labels:
          {{- include "proctor.selector" . | nindent 10 }}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .values.storageClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests:
            storage: {{ .values.size }}
---
{{ include "proctor.podDisruptionBudget" . }}
{{- end -}}

{{/* A Secret's volume with some of its keys, for files that a process reads. Takes name, secret and keys. */}}
{{- define "proctor.secretVolume" -}}
name: {{ .name }}
secret:
  secretName: {{ .secret }}
  defaultMode: 0440
  items:
    {{- range .keys }}
    - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- end -}}

{{- define "proctor.valkeyEnvironment" -}}
- {name: VALKEY_PASSWORD_FILE, value: /var/run/secrets/proctor/password/password}
{{- if .Values.valkey.tls.existingSecret }}
- {name: VALKEY_TLS_CERT_FILE, value: /var/run/secrets/proctor/tls/tls.crt}
- {name: VALKEY_TLS_KEY_FILE, value: /var/run/secrets/proctor/tls/tls.key}
{{- end }}
{{- end -}}

{{- define "proctor.valkeyProbes" -}}
startupProbe:
  exec: {command: [valkey-ready]}
  periodSeconds: 1
  timeoutSeconds: 5
  # Reading back the append-only file of a full server.
  failureThreshold: 300
livenessProbe:
  exec: {command: [valkey-ready]}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  exec: {command: [valkey-ready]}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}

{{- define "proctor.postgresqlEnvironment" -}}
- {name: POSTGRES_PASSWORD_FILE, value: /var/run/secrets/proctor/password/password}
{{- if .Values.postgresql.tls.existingSecret }}
- {name: POSTGRES_TLS_CERT_FILE, value: /var/run/secrets/proctor/tls/tls.crt}
- {name: POSTGRES_TLS_KEY_FILE, value: /var/run/secrets/proctor/tls/tls.key}
{{- end }}
{{- end -}}

{{- define "proctor.postgresqlProbes" -}}
startupProbe:
  exec: {command: [pg_isready, --host=127.0.0.1, --quiet]}
  periodSeconds: 1
  timeoutSeconds: 5
  failureThreshold: 300
livenessProbe:
  exec: {command: [pg_isready, --host=127.0.0.1, --quiet]}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  exec: {command: [pg_isready, --host=127.0.0.1, --quiet]}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}

{{- define "proctor.mlflowEnvironment" -}}
- {name: MLFLOW_PASSWORD_FILE, value: /var/run/secrets/proctor/password/password}
{{- if .Values.gateway.triggers.enabled }}
# By default it sends to public addresses alone; its NetworkPolicy lets it reach the gateway and nothing else.
- {name: MLFLOW_WEBHOOK_ALLOWED_SCHEMES, value: "http,https"}
- {name: MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS, value: "true"}
- {name: MLFLOW_WEBHOOK_CACHE_TTL, value: "0"}
{{- if not .Values.gateway.triggers.webhooksSecret }}
{{ include "proctor.fromSecret" (dict "name" "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY" "secret" (include "proctor.secretName.webhooks" .) "key" "encryption-key") }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "proctor.mlflowProbes" -}}
startupProbe:
  tcpSocket: {port: http}
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  tcpSocket: {port: http}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  tcpSocket: {port: http}
  periodSeconds: 10
  failureThreshold: 3
{{- end -}}
