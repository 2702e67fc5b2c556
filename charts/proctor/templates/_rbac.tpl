{{/* A RoleBinding of a component's service account to the Role of its name. Takes root, component, suffix and namespace. */}}
{{- define "proctor.roleBinding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "proctor.fullname" .root }}-{{ .suffix }}
  namespace: {{ .namespace | default .root.Release.Namespace }}
  labels:
    {{- include "proctor.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "proctor.fullname" .root }}-{{ .suffix }}
subjects:
  - kind: ServiceAccount
    name: {{ include "proctor.fullname" .root }}-{{ .component }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* To find the workloads that name a model, and to write Events on them. */}}
{{- define "proctor.eventRules" -}}
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets, replicasets]
  verbs: [list]
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [list]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
