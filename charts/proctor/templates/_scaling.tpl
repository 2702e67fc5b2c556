{{/* Autoscaling by work that is not done, which the router counts in the ledger; never by the length of a list. */}}

{{/* Work for one pod. Takes component and values. */}}
{{- define "proctor.workPerPod" -}}
{{- if eq .component "inference" }}{{ mul .values.concurrency .values.autoscaling.shardsPerSlot }}{{ else }}{{ .values.autoscaling.workPerPod }}{{ end -}}
{{- end -}}

{{/* How slowly pods go: one a period, after less was wanted for a while. */}}
{{- define "proctor.scalingBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: 0
  policies:
    - {type: Percent, value: 100, periodSeconds: 15}
    - {type: Pods, value: 4, periodSeconds: 15}
scaleDown:
  stabilizationWindowSeconds: {{ .Values.autoscaling.stabilizationSeconds }}
  policies:
    - {type: Pods, value: 1, periodSeconds: {{ .Values.autoscaling.scaleDownPeriodSeconds }}}
{{- end -}}

{{/* What KEDA needs in each ScaledObject. Takes root, autoscaling and target (the Deployment's name). */}}
{{- define "proctor.kedaCommon" -}}
{{- $scaling := .root.Values.autoscaling -}}
scaleTargetRef:
  name: {{ .target }}
pollingInterval: {{ $scaling.pollingIntervalSeconds }}
cooldownPeriod: {{ $scaling.cooldownSeconds }}
minReplicaCount: {{ .autoscaling.min }}
maxReplicaCount: {{ .autoscaling.max }}
# While the work cannot be read: what is there goes on, and one pod at least is there.
fallback:
  failureThreshold: {{ $scaling.fallback.failureThreshold }}
  replicas: {{ $scaling.fallback.replicas }}
  behavior: currentReplicasIfHigher
advanced:
  horizontalPodAutoscalerConfig:
    behavior:
      {{- include "proctor.scalingBehavior" .root | nindent 6 }}
{{- end -}}

{{/* By the work of a service. Takes root, service and target, the work for one pod. */}}
{{- define "proctor.workTrigger" -}}
{{- $scaling := .root.Values.autoscaling -}}
{{- if eq $scaling.source "prometheus" -}}
- type: prometheus
  metricType: AverageValue
  metadata:
    serverAddress: {{ required "autoscaling.prometheusAddress: autoscaling.source is prometheus" $scaling.prometheusAddress }}
    # Every router says the whole deployment's number.
    query: max(proctor_scaling_work{service="{{ .service }}", namespace="{{ .root.Release.Namespace }}"})
    threshold: {{ .target | quote }}
    activationThreshold: "0"
    ignoreNullValues: "false"
{{- else -}}
- type: metrics-api
  metricType: AverageValue
  metadata:
    url: http://{{ include "proctor.fullname" .root }}-router.{{ .root.Release.Namespace }}.svc:9090/metrics
    format: prometheus
    valueLocation: 'proctor_scaling_work{service="{{ .service }}"}'
    targetValue: {{ .target | quote }}
    activationTargetValue: "0"
{{- end }}
{{- end -}}

{{/* Takes root, component and values. Begins with its own `---`. */}}
{{- define "proctor.workerScaling" -}}
{{- $root := .root -}}
{{- $by := include "proctor.scaledBy" (dict "root" $root "autoscaling" .values.autoscaling) -}}
{{- if eq $by "keda" }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
spec:
  {{- include "proctor.kedaCommon" (dict "root" $root "autoscaling" .values.autoscaling "target" (printf "%s-%s" (include "proctor.fullname" $root) .component)) | nindent 2 }}
  triggers:
    {{- include "proctor.workTrigger" (dict "root" $root "service" .component "target" (include "proctor.workPerPod" .)) | nindent 4 }}
{{- else if eq $by "hpa" }}
---
{{ include "proctor.hpa" (dict "root" $root "component" .component "autoscaling" .values.autoscaling) }}
{{- end }}
{{- end -}}

{{/* A HorizontalPodAutoscaler by processor use. Takes root, component, autoscaling, and a suffix and a pool. */}}
{{- define "proctor.hpa" -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "proctor.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ include "proctor.fullname" .root }}-{{ .suffix | default .component }}
  minReplicas: {{ max 1 (int .autoscaling.min) }}
  maxReplicas: {{ .autoscaling.max }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .root.Values.autoscaling.targetCpuPercent }}}
  behavior:
    {{- include "proctor.scalingBehavior" .root | nindent 4 }}
{{- end -}}
