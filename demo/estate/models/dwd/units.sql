-- Units, each as the last record about it says.
select
  UnitId,
  UnitName,
  BuildingId,
  ProjectId
from {{ source('erp', 'sales_log') }}
where UnitId is not null
qualify row_number() over (partition by UnitId order by RecordedAt desc) = 1
