{{/* An init container that gives a folder of the node to berthd's user: a list of the root, the volume, its path, its mode. */}}
{{- define "berth.folder" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  {{- include "berth.image" $root | nindent 2 }}
  command:
    - install
    - --directory
    - --mode={{ index . 3 }}
    - --owner={{ $root.Values.runAsUser | int64 }}
    - --group={{ $root.Values.runAsGroup | int64 }}
    - {{ index . 2 }}
  securityContext:
    runAsNonRoot: false
    runAsUser: 0
    {{- include "berth.locked" . | nindent 4 }}
      # To give the folder away, and to set its mode if it was given away before.
      add: [CHOWN, FOWNER]
  resources:
    {{- toYaml $root.Values.resources | nindent 4 }}
  volumeMounts:
    - name: {{ index . 1 }}
      mountPath: {{ index . 2 }}
{{- end -}}

{{/* A container of the test's pod: a list of the root, its name, what it asks. */}}
{{- define "berth.asks" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  {{- include "berth.image" $root | nindent 2 }}
  command: [berth, --server, "unix:{{ include "berth.socket" $root }}", {{ index . 2 | splitList " " | join ", " }}]
  securityContext:
    {{- include "berth.locked" . | nindent 4 }}
  resources:
    requests: { cpu: 5m, memory: 16Mi }
    limits: { memory: 64Mi }
  volumeMounts:
    - name: socket-dir
      mountPath: {{ $root.Values.socketDir }}
      readOnly: true
{{- end -}}

{{- define "berth.devicePlugin" -}}
{{- with .Values.devicePlugin -}}
- name: device-plugin
  {{- include "berth.image" $ | nindent 2 }}
  command:
    - berth
    - --server=unix:{{ include "berth.socket" $ }}
    - kube
    - device-plugin
    - --devices={{ .devices }}
    {{- with .resource }}
    - --resource={{ . }}
    {{- end }}
    {{- with .reserved }}
    - --reserved={{ . }}
    {{- end }}
    - --topology={{ .topology }}
    - --policy={{ .policy }}
    {{- if .enforced }}
    - --enforced
    {{- end }}
    - --plugin-dir={{ $.Values.kubeletDir }}/device-plugins
    - --pod-resources={{ $.Values.kubeletDir }}/pod-resources/kubelet.sock
    {{- range .extraArgs }}
    - {{ . | quote }}
    {{- end }}
  securityContext:
    {{- include "berth.adapter" $ | nindent 4 }}
  resources:
    {{- toYaml .resources | nindent 4 }}
  volumeMounts:
    - name: socket-dir
      mountPath: {{ $.Values.socketDir }}
      readOnly: true
    - name: device-plugins
      mountPath: {{ $.Values.kubeletDir }}/device-plugins
    - name: pod-resources
      mountPath: {{ $.Values.kubeletDir }}/pod-resources
      readOnly: true
{{- end -}}
{{- end -}}

{{- define "berth.nri" -}}
{{- with .Values.nri -}}
- name: nri
  {{- include "berth.image" $ | nindent 2 }}
  command:
    - berth
    - --server=unix:{{ include "berth.socket" $ }}
    - kube
    - nri
    - --nri-socket={{ .socketDir }}/nri.sock
    - --index={{ .index }}
    - --within={{ .within }}
    - --cpu-manager-state={{ $.Values.kubeletDir }}/cpu_manager_state
    - --pod-resources={{ $.Values.kubeletDir }}/pod-resources/kubelet.sock
    {{- if $.Values.metrics.enabled }}
    - --metrics=0.0.0.0:{{ .metricsPort | int64 }}
    {{- end }}
    {{- range .extraArgs }}
    - {{ . | quote }}
    {{- end }}
  {{- if $.Values.metrics.enabled }}
  ports:
    - name: nri-metrics
      containerPort: {{ .metricsPort | int64 }}
  # Whether the process answers: whether a runtime has taken it in is told by /readyz, and is no reason to start it anew.
  livenessProbe:
    httpGet: { path: /livez, port: nri-metrics }
    periodSeconds: 30
    timeoutSeconds: 10
    failureThreshold: 4
  {{- end }}
  securityContext:
    {{- include "berth.adapter" $ | nindent 4 }}
  resources:
    {{- toYaml .resources | nindent 4 }}
  volumeMounts:
    - name: socket-dir
      mountPath: {{ $.Values.socketDir }}
      readOnly: true
    - name: nri
      mountPath: {{ .socketDir }}
      readOnly: true
    # With what lies in it: kubelet's socket too.
    - name: kubelet
      mountPath: {{ $.Values.kubeletDir }}
      readOnly: true
{{- end -}}
{{- end -}}
