{# dbt's macros over dates that templates count with; no SQL comes of them by itself. #}

{% macro convert_datetime(date_str, date_fmt) -%}
  {%- set message = "the date '" ~ date_str ~ "' is not of the format '" ~ date_fmt ~ "'" -%}
  {{ return(try_or_compiler_error(message, modules.datetime.datetime.strptime, date_str | trim, date_fmt)) }}
{%- endmacro %}

{% macro dates_in_range(start_date_str, end_date_str=none, in_fmt="%Y%m%d", out_fmt="%Y%m%d") -%}
  {%- set first = dbt.convert_datetime(start_date_str, in_fmt) -%}
  {%- set last = dbt.convert_datetime(start_date_str if end_date_str is none else end_date_str, in_fmt) -%}
  {%- if last < first -%}
    {{ exceptions.raise_compiler_error("dates_in_range: " ~ start_date_str ~ " is after " ~ end_date_str) }}
  {%- endif -%}
  {%- set days = [] -%}
  {%- for number in range((last - first).days + 1) -%}
    {%- set day = first + modules.datetime.timedelta(days=number) -%}
    {%- do days.append(day.strftime(out_fmt) if out_fmt else day) -%}
  {%- endfor -%}
  {{ return(days) }}
{%- endmacro %}

{% macro partition_range(raw_partition_date, date_fmt='%Y%m%d') -%}
  {%- set ends = (raw_partition_date | string).split(',') -%}
  {%- if ends | length > 2 -%}
    {{ exceptions.raise_compiler_error("partition_range takes one date or two with a comma between them, not " ~ raw_partition_date) }}
  {%- endif -%}
  {{ return(dbt.dates_in_range(ends[0], ends[1] if ends | length == 2 else none, in_fmt=date_fmt)) }}
{%- endmacro %}
