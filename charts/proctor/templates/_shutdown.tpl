{{/*
terminationGracePeriodSeconds of a worker. From SIGTERM it takes no more messages, has PROCTOR_GRACE_S to finish or hand
back what it has, and may first have to wait for one shard that was asked just before; past the sum it is killed, and
its work is found again only after the broker's visibility timeout or by the reconciler. The margin is for what
Kubernetes does around it. Shards are small, so the sum stays below that of a deployment that waits for whole tasks.
*/}}
{{- define "proctor.workerSeconds" -}}
{{- $shutdown := .Values.shutdown -}}
{{- add $shutdown.graceSeconds $shutdown.longestShardSeconds $shutdown.marginSeconds -}}
{{- end -}}

{{/* Of the gateway: the seconds in which it is taken out of its services, then --grace, then the margin. */}}
{{- define "proctor.gatewaySeconds" -}}
{{- add .Values.gateway.drainSeconds .Values.gateway.graceSeconds .Values.shutdown.marginSeconds -}}
{{- end -}}
