{{/* Pods as the restricted profile wants them, the same for every component. */}}

{{- define "proctor.podSecurity" -}}
runAsNonRoot: true
{{- if not (kindIs "invalid" .Values.pods.userId) }}
runAsUser: {{ .Values.pods.userId }}
runAsGroup: {{ .Values.pods.userId }}
fsGroup: {{ .Values.pods.userId }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/*
The first process of a namespace of processes takes no signal before it has a handler: on a busy node a pod that was told
to leave just as it started stayed until its grace was over, a Valkey for a minute. Shared, that process is the pod's.
*/}}
{{- define "proctor.sharedProcesses" -}}
shareProcessNamespace: true
{{- end -}}

{{- define "proctor.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
privileged: false
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Where pods run. Takes root, component, values (the component's) and a pool. */}}
{{- define "proctor.placement" -}}
{{- $pods := .root.Values.pods -}}
{{- $selector := include "proctor.selector" . -}}
{{- with .values.priorityClassName | default $pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector | default $pods.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations | default $pods.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity | default $pods.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $pods.topologySpread.enabled }}
topologySpreadConstraints:
  {{- range $pods.topologySpread.topologyKeys }}
  - topologyKey: {{ . }}
    maxSkew: {{ $pods.topologySpread.maxSkew }}
    whenUnsatisfiable: {{ $pods.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* A pod template's metadata. Takes root, component, values, a pool, and checksum (what its pods read as they start). */}}
{{- define "proctor.podMetadata" -}}
labels:
  {{- include "proctor.labels" . | nindent 2 }}
  {{- with .root.Values.pods.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  {{- with .checksum }}
  # Settings are read as a process starts: what changes them changes the pods.
  checksum/config: {{ sha256sum . }}
  {{- end }}
  kubectl.kubernetes.io/default-container: {{ .component }}
  {{- with mergeOverwrite (dict) .root.Values.pods.annotations (.values.podAnnotations | default dict) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* What services of Proctor's read as they start, and is in no Secret. */}}
{{- define "proctor.checksum" -}}
{{- include "proctor.commonEnvironment" . }}{{ include "proctor.commonFiles" . -}}
{{- end -}}

{{/* Whether a component's pods talk to Kubernetes: only those have a token. Takes root and component. */}}
{{- define "proctor.talksToKubernetes" -}}
{{- $values := .root.Values -}}
{{- if has .component (list "router" "gateway") -}}
{{- if or $values.leaderElection.enabled (and (eq .component "gateway") (eq $values.admission.mode "webhook")) }}true{{ end -}}
{{- else if eq .component "inference" -}}
{{- if include "proctor.watchedNamespaces" .root | fromJsonArray }}true{{ end -}}
{{- else if eq .component "registry" -}}
{{- if or $values.registry.events.enabled (eq $values.admission.mode "policy") }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/*
The spec of a pod that runs `proctor`. Takes root, component, values, args, and
  target: the image's, where it is not the component's name; ports and probes, as YAML; seconds: to end in;
  drainSeconds: before it is told to end; restartPolicy.
*/}}
{{- define "proctor.podSpec" -}}
{{- $root := .root -}}
{{- $storage := include "proctor.storage" . | fromYaml -}}
serviceAccountName: {{ include "proctor.fullname" $root }}-{{ .component }}
automountServiceAccountToken: {{ if include "proctor.talksToKubernetes" . }}true{{ else }}false{{ end }}
# Hundreds of variables of every service in the namespace otherwise.
enableServiceLinks: false
{{ include "proctor.sharedProcesses" . }}
{{- with .restartPolicy }}
restartPolicy: {{ . }}
{{- end }}
{{- with .seconds }}
terminationGracePeriodSeconds: {{ . }}
{{- end }}
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
    image: {{ include "proctor.image" (dict "root" $root "target" (.target | default .component)) }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    {{- with .command }}
    command:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    args:
      {{- toYaml .args | nindent 6 }}
    {{- if ne .component "migrate" }}
    envFrom:
      - configMapRef:
          name: {{ include "proctor.fullname" $root }}-environment
    {{- end }}
    env:
      {{- if eq .component "migrate" }}
      - {name: PROCTOR_HOME, value: /var/lib/proctor}
      {{- end }}
      {{- include "proctor.variables" . | nindent 6 }}
      {{- with .env }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- with .ports }}
    ports:
      {{- . | nindent 6 }}
    {{- end }}
    {{- with .probes }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .drainSeconds }}
    lifecycle:
      preStop:
        sleep:
          seconds: {{ . }}
    {{- end }}
    securityContext:
      {{- include "proctor.containerSecurity" $root | nindent 6 }}
    resources:
      {{- toYaml .values.resources | nindent 6 }}
    volumeMounts:
      {{- toYaml (concat $storage.mounts (.mounts | default list)) | nindent 6 }}
volumes:
  {{- toYaml (concat $storage.volumes (.volumes | default list)) | nindent 2 }}
{{- end -}}

{{/* A component's service account. Takes root, component and values. */}}
{{- define "proctor.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
  {{- with .values.serviceAccountAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
# Pods that talk to Kubernetes ask for their token themselves.
automountServiceAccountToken: false
{{- end -}}

{{/* Takes root, component, and a pool and its suffix. */}}
{{- define "proctor.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .root.Values.pods.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "proctor.selector" . | nindent 6 }}
{{- end -}}
