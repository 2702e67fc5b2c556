{{/* Triton servers of a pool. Each takes root, component (`triton`), pool (its name), suffix, values (the pool's `triton`). */}}

{{/* Arguments of tritonserver, or of the trial's image. */}}
{{- define "proctor.tritonArgs" -}}
{{- $args := list -}}
{{- if not (dig "modelRepository" "trial" false .values) -}}
{{- $place := dig "s3" "uri" "/models" .values.modelRepository -}}
{{- $args = list (printf "--model-repository=%s" $place) "--model-control-mode=none" "--http-port=8000" "--grpc-port=8001" "--metrics-port=8002" (printf "--exit-timeout-secs=%d" (int (.values.exitSeconds | default 30))) -}}
{{- if not (dig "metrics" true .values) }}{{ $args = append $args "--allow-metrics=false" }}{{ end -}}
{{- if eq (.values.backend | default "python") "tensorrtllm" }}{{ $args = append $args "--disable-auto-complete-config" }}{{ end -}}
{{- end -}}
{{- toYaml (concat $args (.values.args | default list)) -}}
{{- end -}}

{{/* Volumes and where they are mounted, as an object. */}}
{{- define "proctor.tritonStorage" -}}
{{- $pods := .root.Values.pods -}}
{{- $repository := .values.modelRepository -}}
{{- $volumes := list
  (dict "name" "tmp" "emptyDir" (dict "sizeLimit" (.values.tmpSize | default $pods.tmpSize)))
  (dict "name" "shm" "emptyDir" (dict "medium" "Memory" "sizeLimit" (.values.sharedMemory | default "64Mi"))) -}}
{{- $mounts := list (dict "name" "tmp" "mountPath" "/tmp") (dict "name" "shm" "mountPath" "/dev/shm") -}}
{{- if $repository.pvc -}}
{{- $volumes = append $volumes (dict "name" "models" "persistentVolumeClaim" (dict "claimName" $repository.pvc.claimName "readOnly" true)) -}}
{{- $mount := dict "name" "models" "mountPath" "/models" "readOnly" true -}}
{{- with $repository.pvc.subPath }}{{ $_ := set $mount "subPath" . }}{{ end -}}
{{- $mounts = append $mounts $mount -}}
{{- else if $repository.image -}}
{{- $volumes = append $volumes (dict "name" "models" "emptyDir" (dict "sizeLimit" (.values.modelsSize | default "50Gi"))) -}}
{{- $mounts = append $mounts (dict "name" "models" "mountPath" "/models") -}}
{{- end -}}
{{- toYaml (dict "volumes" $volumes "mounts" $mounts) -}}
{{- end -}}

{{/* Shards for a pod that is scaled by the ledger's work; nothing where it is by its queue time. vLLM takes every request as it comes, so that Triton's queue says nothing: a shard keeps some 32 of them in flight, and a server has 256. */}}
{{- define "proctor.tritonShardsPerPod" -}}
{{- with .values.autoscaling -}}
{{- if .shardsPerPod }}{{ .shardsPerPod }}{{ else if and (eq ($.values.backend | default "") "vllm") (not .queueMilliseconds) }}8{{ end -}}
{{- end -}}
{{- end -}}

{{/* `keda` where KEDA is there and what it would ask is known; `hpa` otherwise; nothing where it is not scaled. */}}
{{- define "proctor.tritonScaledBy" -}}
{{- $by := include "proctor.scaledBy" (dict "root" .root "autoscaling" .values.autoscaling) -}}
{{- if and (eq $by "keda") (eq .root.Values.autoscaling.mode "auto") (not (include "proctor.tritonShardsPerPod" .)) (not .root.Values.autoscaling.prometheusAddress) }}hpa{{ else }}{{ $by }}{{ end -}}
{{- end -}}
