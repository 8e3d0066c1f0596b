-- Statuses, each as the last record with it says.
select
  StatusId,
  StatusName
from {{ source('erp', 'sales_log') }}
where StatusId is not null
qualify row_number() over (partition by StatusId order by RecordedAt desc) = 1
