{{- define "proctor.gatewayPorts" -}}
- {name: grpc, containerPort: 50061, protocol: TCP}
- {name: http, containerPort: 8080, protocol: TCP}
- {name: metrics, containerPort: 9090, protocol: TCP}
{{- if eq .Values.admission.mode "webhook" }}
- {name: admission, containerPort: 8443, protocol: TCP}
{{- end }}
{{- end -}}

{{/* On the metrics port, which asks no client for a certificate: /livez of the process, /readyz of its stores and listeners. */}}
{{- define "proctor.gatewayProbes" -}}
startupProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 90
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
{{- end -}}
