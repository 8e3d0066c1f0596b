-- Buildings, each as the last record about it says.
{{ last_record('BuildingId', ['BuildingName', 'ProjectId']) }}
