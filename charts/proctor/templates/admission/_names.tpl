{{/* Of the gate where models are deployed. */}}

{{/* Name of an object that is of no namespace: releases of one name in two namespaces keep apart. Takes root and suffix. */}}
{{- define "proctor.admission.clusterName" -}}
{{- /* `helm lint` has no namespace. */ -}}
{{ printf "%s-%s-%s" .root.Release.Namespace (include "proctor.fullname" .root) .suffix | trimPrefix "-" }}
{{- end -}}

{{/* Labels and name of such an object. Takes root, component and suffix. */}}
{{- define "proctor.admission.clusterMetadata" -}}
name: {{ include "proctor.admission.clusterName" . }}
labels:
  {{- include "proctor.labels" (dict "root" .root "component" .component) | nindent 2 }}
{{- end -}}

{{/* What is looked at: Pods, and what makes Pods. KServe's, where it is installed; where it is not, the rule is idle. */}}
{{- define "proctor.admission.rules" -}}
- apiGroups: [""]
  apiVersions: [v1]
  operations: [CREATE, UPDATE]
  resources: [pods, replicationcontrollers]
- apiGroups: [apps]
  apiVersions: [v1]
  operations: [CREATE, UPDATE]
  resources: [deployments, statefulsets, daemonsets, replicasets]
- apiGroups: [batch]
  apiVersions: [v1]
  operations: [CREATE, UPDATE]
  resources: [jobs, cronjobs]
- apiGroups: [serving.kserve.io]
  apiVersions: [v1beta1]
  operations: [CREATE, UPDATE]
  resources: [inferenceservices]
{{- end -}}

{{/* CEL: the annotations that an object names models by, its own and its Pods'. Takes the variable of the object. */}}
{{- define "proctor.admission.named" -}}
({{ . }}.?metadata.?annotations[?'proctor.dev/model'].orValue('') + ',' + {{ . }}.?spec.?template.?metadata.?annotations[?'proctor.dev/model'].orValue('') + ',' + {{ . }}.?spec.?jobTemplate.?spec.?template.?metadata.?annotations[?'proctor.dev/model'].orValue(''))
{{- end -}}

{{/* Nobody is asked of an object that names no model, nor of a change that names no other than before. */}}
{{- define "proctor.admission.matchConditions" -}}
- name: names-a-model
  expression: "{{ include "proctor.admission.named" "object" }} != ',,'"
- name: names-another-than-before
  expression: "request.operation != 'UPDATE' || {{ include "proctor.admission.named" "object" }} != {{ include "proctor.admission.named" "oldObject" }}"
{{- end -}}
