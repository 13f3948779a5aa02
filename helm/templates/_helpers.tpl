{{/* Name of every object: the release, with the chart's name unless it is in there already; 13 characters are left for an ending. */}}
{{- define "berth.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects our pods. A DaemonSet's selector can never change, so nothing with a version belongs here. */}}
{{- define "berth.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "berth.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Name, namespace and labels of an object: a list of the root and of what the name ends with. */}}
{{- define "berth.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "berth.fullname" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "berth.labels" $root | nindent 2 }}
{{- end -}}

{{- define "berth.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "berth.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* Image and pull policy of a container. */}}
{{- define "berth.image" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end -}}

{{- define "berth.socket" -}}
{{ .Values.socketDir }}/berthd.sock
{{- end -}}

{{/* What no container of ours needs. */}}
{{- define "berth.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Kubelet's and the runtime's sockets are root's own: an adapter is root, without any of root's capabilities. */}}
{{- define "berth.adapter" -}}
runAsNonRoot: false
runAsUser: 0
runAsGroup: 0
{{ include "berth.locked" . }}
{{- with .Values.adapterSELinux }}
seLinuxOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The nodes that the pod may run on; the test's pod has to run on one of them too. */}}
{{- define "berth.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What pods ask the device plugin for. */}}
{{- define "berth.resource" -}}
{{- .Values.devicePlugin.resource | default (ternary "berth.dev/llc" "berth.dev/cpu" (eq .Values.devicePlugin.devices "llc")) -}}
{{- end -}}
