-- Projects, each as the last record about it says.
{{ last_record('ProjectId', ['ProjectName']) }}
