-- Projects, each as the last record about it says.
select
  ProjectId,
  ProjectName
from {{ source('erp', 'sales_log') }}
where ProjectId is not null
qualify row_number() over (partition by ProjectId order by RecordedAt desc) = 1
