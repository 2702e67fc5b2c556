{{/* Pods that call the gateway from inside: the test, and schedules. */}}

{{/* Where the gateway is, as its callers in the cluster are told. */}}
{{- define "proctor.gatewayUrl" -}}
{{ ternary "grpcs" "grpc" (not (empty .Values.gateway.tls.existingSecret)) }}://{{ include "proctor.fullname" . }}-gateway.{{ .Release.Namespace }}.svc:{{ .Values.gateway.service.grpcPort }}
{{- end -}}

{{/* Variables of a caller. */}}
{{- define "proctor.callerEnvironment" -}}
- {name: PROCTOR_HOME, value: /var/lib/proctor}
- {name: PROCTOR_GATEWAY, value: {{ include "proctor.gatewayUrl" . | quote }}}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_GATEWAY_TOKEN" "secret" (include "proctor.secretName.gateway" .) "key" "token") }}
{{- if .Values.gateway.tls.existingSecret }}
- {name: PROCTOR_GATEWAY_CA, value: /var/run/secrets/proctor/gateway-ca/ca.crt}
{{- else }}
# The line stays within the cluster, whose network the values trust.
- {name: PROCTOR_GATEWAY_INSECURE, value: "1"}
{{- end }}
{{- if .Values.gateway.tls.clientCaSecret }}
- {name: PROCTOR_GATEWAY_CERTIFICATE, value: /var/run/secrets/proctor/caller/tls.crt}
- {name: PROCTOR_GATEWAY_KEY, value: /var/run/secrets/proctor/caller/tls.key}
{{- end }}
{{- end -}}

{{/* A caller's volumes and mounts, as an object. Takes root, and files (the name of a ConfigMap mounted at /etc/proctor). */}}
{{- define "proctor.callerStorage" -}}
{{- $values := .root.Values -}}
{{- $volumes := list
  (dict "name" "tmp" "emptyDir" (dict "sizeLimit" $values.pods.tmpSize))
  (dict "name" "home" "emptyDir" (dict "sizeLimit" $values.pods.homeSize))
  (dict "name" "files" "configMap" (dict "name" .files "defaultMode" 0444)) -}}
{{- $mounts := list
  (dict "name" "tmp" "mountPath" "/tmp")
  (dict "name" "home" "mountPath" "/var/lib/proctor")
  (dict "name" "files" "mountPath" "/etc/proctor" "readOnly" true) -}}
{{- with $values.gateway.tls.existingSecret -}}
{{- $volumes = append $volumes (include "proctor.secretVolume" (dict "name" "gateway-ca" "secret" . "keys" (list "ca.crt")) | fromYaml) -}}
{{- $mounts = append $mounts (dict "name" "gateway-ca" "mountPath" "/var/run/secrets/proctor/gateway-ca" "readOnly" true) -}}
{{- end -}}
{{- if $values.gateway.tls.clientCaSecret -}}
{{- $secret := required "gateway.tls.callerSecret: the gateway lets in clients with a certificate alone, and the chart's own need one" $values.gateway.tls.callerSecret -}}
{{- $volumes = append $volumes (include "proctor.secretVolume" (dict "name" "caller" "secret" $secret "keys" (list "tls.crt" "tls.key")) | fromYaml) -}}
{{- $mounts = append $mounts (dict "name" "caller" "mountPath" "/var/run/secrets/proctor/caller" "readOnly" true) -}}
{{- end -}}
{{- toYaml (dict "volumes" $volumes "mounts" $mounts) -}}
{{- end -}}

{{/* The spec of a caller's pod. Takes root, component, values, command, args, files, env (YAML, further variables). */}}
{{- define "proctor.callerPod" -}}
{{- $root := .root -}}
{{- $storage := include "proctor.callerStorage" . | fromYaml -}}
restartPolicy: Never
serviceAccountName: {{ include "proctor.fullname" $root }}-{{ .component }}
automountServiceAccountToken: false
enableServiceLinks: false
{{ include "proctor.sharedProcesses" . }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- include "proctor.podSecurity" $root | nindent 2 }}
{{- include "proctor.placement" . }}
containers:
  - name: {{ .component }}
    image: {{ include "proctor.image" (dict "root" $root "target" "gateway") }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    {{- with .command }}
    command:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .args }}
    args:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    env:
      {{- include "proctor.callerEnvironment" $root | nindent 6 }}
      {{- with .env }}
      {{- . | nindent 6 }}
      {{- end }}
    securityContext:
      {{- include "proctor.containerSecurity" $root | nindent 6 }}
    resources:
      {{- toYaml .values.resources | nindent 6 }}
    volumeMounts:
      {{- toYaml $storage.mounts | nindent 6 }}
volumes:
  {{- toYaml $storage.volumes | nindent 2 }}
{{- end -}}

{{/* What the test is told besides. */}}
{{- define "proctor.testEnvironment" -}}
- {name: PROCTOR_TEST_POOL, value: {{ .Values.test.pool | quote }}}
{{- if include "proctor.secretName.registry" . }}
{{ include "proctor.fromSecret" (dict "name" "PROCTOR_REGISTRY_URI" "secret" (include "proctor.secretName.registry" .) "key" (ternary "registry-uri" .Values.registry.uriKey .Values.mlflow.enabled)) }}
{{- else if .Values.registry.uri }}
- {name: PROCTOR_REGISTRY_URI, value: {{ .Values.registry.uri | quote }}}
{{- end }}
{{- end -}}
