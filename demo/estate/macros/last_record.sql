{# The record of the log that was written down last for each value of a key: a correction supersedes what it corrects. #}
{% macro last_record(key, columns) -%}
select
  {{ key }},
  {{ columns | join(',\n  ') }}
from {{ source('erp', 'sales_log') }}
where {{ key }} is not null
qualify row_number() over (partition by {{ key }} order by RecordedAt desc) = 1
{%- endmacro %}
