-- Units, each as the last record about it says.
{{ last_record('UnitId', ['UnitName', 'BuildingId', 'ProjectId']) }}
