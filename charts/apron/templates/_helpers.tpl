{{- define "apron.labels" -}}
app: apron
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* Roles have no namespace, so whatever tells managers apart is in their name: one must not take
the rights of another. The usual manager has the short name it always had. */}}
{{- define "apron.role" -}}
{{- if and (eq .Release.Namespace "crossplane-system") (eq .Values.groupSuffix "crossplane.io") -}}
apron
{{- else -}}
apron:{{ .Release.Namespace }}:{{ .Values.groupSuffix }}
{{- end -}}
{{- end -}}
