-- Statuses, each as the last record with it says.
{{ last_record('StatusId', ['StatusName']) }}
