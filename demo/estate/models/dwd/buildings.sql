-- Buildings, each as the last record about it says.
select
  BuildingId,
  BuildingName,
  ProjectId
from {{ source('erp', 'sales_log') }}
where BuildingId is not null
qualify row_number() over (partition by BuildingId order by RecordedAt desc) = 1
