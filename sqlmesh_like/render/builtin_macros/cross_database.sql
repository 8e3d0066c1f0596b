{# dbt's cross-database macros in Spark SQL: https://docs.getdbt.com/reference/dbt-jinja-functions/cross-database-macros.
   Each goes through dispatch, so that a project replaces one by a macro `spark__<name>` of its own; names and defaults of
   arguments are dbt's. Values and types are dbt-spark's, but for those that docs/dbt.md lists. #}

{% macro dateadd(datepart, interval, from_date_or_timestamp) %}{{ return(adapter.dispatch('dateadd', 'dbt')(datepart, interval, from_date_or_timestamp)) }}{% endmacro %}
{#- As on dbt-spark always a timestamp: the date is moved, its time of day stays, in whole seconds. -#}
{% macro default__dateadd(datepart, interval, from_date_or_timestamp) -%}
  {%- set part = datepart | string | lower -%}
  {%- set from = "cast(" ~ from_date_or_timestamp ~ " as timestamp)" -%}
  {%- set day = "cast(" ~ from_date_or_timestamp ~ " as date)" -%}
  {%- set seconds = {'hour': 3600, 'minute': 60, 'second': 1} -%}
  {%- set days = {'day': 1, 'week': 7} -%}
  {%- set months = {'month': 1, 'quarter': 3, 'year': 12} -%}
  {%- if part in seconds -%}
    timestamp_seconds(unix_timestamp({{ from }}) + cast(({{ interval }}) * {{ seconds[part] }} as int))
  {%- elif part in days or part in months -%}
    {%- if part in days -%}
      {%- set moved = "date_add(" ~ day ~ ", cast((" ~ interval ~ ") * " ~ days[part] ~ " as int))" -%}
    {%- else -%}
      {%- set moved = "add_months(" ~ day ~ ", cast((" ~ interval ~ ") * " ~ months[part] ~ " as int))" -%}
    {%- endif -%}
    timestamp_seconds(unix_timestamp(cast({{ moved }} as timestamp)) + unix_timestamp({{ from }}) - unix_timestamp(cast({{ day }} as timestamp)))
  {%- else -%}
    {{ exceptions.raise_compiler_error("dateadd: unknown date part '" ~ datepart ~ "'; one of second, minute, hour, day, week, month, quarter, year") }}
  {%- endif -%}
{%- endmacro %}

{% macro assert_not_null(function, arg) %}{{ return(adapter.dispatch('assert_not_null', 'dbt')(function, arg)) }}{% endmacro %}
{% macro default__assert_not_null(function, arg) -%}
  {%- set value = function ~ "(" ~ arg ~ ")" -%}
  coalesce({{ value }}, nvl2({{ value }}, assert_true({{ value }} is not null), null))
{%- endmacro %}

{% macro datediff(first_date, second_date, datepart) %}{{ return(adapter.dispatch('datediff', 'dbt')(first_date, second_date, datepart)) }}{% endmacro %}
{#- The values of dbt-spark: of weeks, months and quarters whole ones, and one more where the day lies earlier in its
    week (from Sunday on), month or quarter; of shorter parts those that have begun. -#}
{% macro default__datediff(first_date, second_date, datepart) -%}
  {%- set part = datepart | string | lower -%}
  {%- set kind = 'timestamp' if part in ('hour', 'minute', 'second') else 'date' -%}
  {%- set first, second = "cast(" ~ first_date ~ " as " ~ kind ~ ")", "cast(" ~ second_date ~ " as " ~ kind ~ ")" -%}
  {%- if part == 'day' -%}
    datediff({{ second }}, {{ first }})
  {%- elif part == 'year' -%}
    (year({{ second }}) - year({{ first }}))
  {%- elif part in ('month', 'quarter') -%}
    {%- set months = "(year(" ~ second ~ ") - year(" ~ first ~ ")) * 12 + month(" ~ second ~ ") - month(" ~ first ~ ")" -%}
    {%- set ends = "last_day(" ~ first ~ ") = " ~ first ~ " and last_day(" ~ second ~ ") = " ~ second -%}
    {%- set short, over = "(" ~ first ~ " < " ~ second ~ " and day(?) < day(!))", "(" ~ first ~ " > " ~ second ~ " and day(?) > day(!))" -%}
    {%- set short = short | replace('?', second) | replace('!', first) -%}
    {%- set over = over | replace('?', second) | replace('!', first) -%}
    {%- if part == 'month' -%}
      {#- between two last days of months whole months, and one more for the later month's day being smaller -#}
      cast({{ months }} + case when {{ short }} and {{ ends }} then 1 when {{ over }} and {{ ends }} then -1 else 0 end as bigint)
    {%- else -%}
      {%- set whole = "(" ~ months ~ " + case when " ~ ends ~ " then 0 when " ~ short ~ " then -1 when " ~ over ~ " then 1 else 0 end) / 3" -%}
      {{- dbt._whole_and_begun(first, second, whole, '(dayofyear(?) - quarter(?) * 365 / 4)') -}}
    {%- endif -%}
  {%- elif part == 'week' -%}
    {{- dbt._whole_and_begun(first, second, "datediff(" ~ second ~ ", " ~ first ~ ") / 7", 'dayofweek(?)') -}}
  {%- elif part in ('hour', 'minute', 'second') -%}
    {%- set whole = "(unix_timestamp(" ~ second ~ ") - unix_timestamp(" ~ first ~ ")) / " ~ {'hour': 3600, 'minute': 60, 'second': 1}[part] -%}
    cast(case when {{ first }} < {{ second }} then ceil({{ whole }}) else floor({{ whole }}) end as bigint)
  {%- else -%}
    {{ exceptions.raise_compiler_error("datediff: unknown date part '" ~ datepart ~ "'; one of second, minute, hour, day, week, month, quarter, year") }}
  {%- endif -%}
{%- endmacro %}

{% macro _whole_and_begun(first, second, whole, within) -%}
  {%- set early, late = within | replace('?', first), within | replace('?', second) -%}
  cast(case when {{ first }} < {{ second }} then floor({{ whole }}) else ceil({{ whole }}) end
    + case when {{ first }} < {{ second }} and {{ late }} < {{ early }} then 1
      when {{ first }} > {{ second }} and {{ late }} > {{ early }} then -1 else 0 end as bigint)
{%- endmacro %}

{% macro date_trunc(datepart, date) %}{{ return(adapter.dispatch('date_trunc', 'dbt')(datepart, date)) }}{% endmacro %}
{% macro default__date_trunc(datepart, date) -%} date_trunc('{{ datepart }}', {{ date }}) {%- endmacro %}

{% macro last_day(date, datepart) %}{{ return(adapter.dispatch('last_day', 'dbt')(date, datepart)) }}{% endmacro %}
{% macro default__last_day(date, datepart) -%}
  {%- set part = datepart | string | lower -%}
  {%- if part == 'month' -%}
    last_day({{ date }})
  {%- elif part == 'day' -%}
    cast({{ date }} as date)
  {%- elif part in ('week', 'quarter', 'year') -%}
    {%- set first = "cast(date_trunc('" ~ part ~ "', " ~ date ~ ") as date)" -%}
    date_add({{ "date_add(" ~ first ~ ", 7)" if part == 'week' else "add_months(" ~ first ~ ", " ~ (3 if part == 'quarter' else 12) ~ ")" }}, -1)
  {%- else -%}
    {{ exceptions.raise_compiler_error("last_day: unknown date part '" ~ datepart ~ "'; one of day, week, month, quarter, year") }}
  {%- endif -%}
{%- endmacro %}
{% macro default_last_day(date, datepart) %}{{ return(dbt.default__last_day(date, datepart)) }}{% endmacro %}

{% macro date(year, month, day) %}{{ return(adapter.dispatch('date', 'dbt')(year, month, day)) }}{% endmacro %}
{#- Numbers that are not a date are an error here, as in dbt; on Spark they would be NULL. Columns are possible besides. -#}
{% macro default__date(year, month, day) -%}
  {%- if year is integer and month is integer and day is integer -%}
    cast('{{ modules.datetime.date(year, month, day).isoformat() }}' as date)
  {%- else -%}
    make_date({{ year }}, {{ month }}, {{ day }})
  {%- endif -%}
{%- endmacro %}

{% macro current_timestamp() %}{{ return(adapter.dispatch('current_timestamp', 'dbt')()) }}{% endmacro %}
{% macro default__current_timestamp() -%} current_timestamp() {%- endmacro %}
{% macro snapshot_get_time() %}{{ return(adapter.dispatch('snapshot_get_time', 'dbt')()) }}{% endmacro %}
{% macro default__snapshot_get_time() -%} {{ dbt.current_timestamp() }} {%- endmacro %}
{% macro current_timestamp_backcompat() %}{{ return(adapter.dispatch('current_timestamp_backcompat', 'dbt')()) }}{% endmacro %}
{% macro default__current_timestamp_backcompat() -%} current_timestamp() {%- endmacro %}
{% macro current_timestamp_in_utc_backcompat() %}{{ return(adapter.dispatch('current_timestamp_in_utc_backcompat', 'dbt')()) }}{% endmacro %}
{% macro default__current_timestamp_in_utc_backcompat() %}{{ return(adapter.dispatch('current_timestamp_backcompat', 'dbt')()) }}{% endmacro %}
{% macro current_timestamp_in_utc() -%} current_timestamp() {%- endmacro %}

{% macro get_intervals_between(start_date, end_date, datepart) %}{{ return(adapter.dispatch('get_intervals_between', 'dbt')(start_date, end_date, datepart)) }}{% endmacro %}
{% macro default__get_intervals_between(start_date, end_date, datepart) -%}
  {%- call statement('get_intervals_between', fetch_result=True) %} select {{ dbt.datediff(start_date, end_date, datepart) }} as intervals {% endcall -%}
  {%- set answer = load_result('get_intervals_between') -%}
  {{ return(answer['data'][0][0] if answer and answer['data'] else 1) }}
{%- endmacro %}

{% macro date_spine(datepart, start_date, end_date) %}{{ return(adapter.dispatch('date_spine', 'dbt')(datepart, start_date, end_date)) }}{% endmacro %}
{#- As many dates as `datediff` counts, and none after the end. dbt asks for that number, here the query counts itself:
    its rows are right whenever it is run, and a number below one is an error, as in dbt. -#}
{% macro default__date_spine(datepart, start_date, end_date) -%}
  {%- set name = "date_" ~ datepart -%}
  select {{ name }}
  from (
    select {{ dbt.dateadd(datepart, "generated_number - 1", start_date) }} as {{ name }}
    from ({{ dbt.generate_series("cast(" ~ dbt.datediff(start_date, end_date, datepart) ~ " as int)") }})
  )
  where {{ name }} <= {{ end_date }}
{%- endmacro %}

{% macro generate_series(upper_bound) %}{{ return(adapter.dispatch('generate_series', 'dbt')(upper_bound)) }}{% endmacro %}
{#- The step is written, for without it Spark counts from 1 down to a smaller bound. -#}
{% macro default__generate_series(upper_bound) -%}
  {%- if upper_bound is number and upper_bound <= 0 -%}{{ exceptions.raise_compiler_error('upper bound must be positive') }}{%- endif -%}
  select explode(sequence(1, {{ upper_bound }}, 1)) as generated_number
{%- endmacro %}

{% macro get_powers_of_two(upper_bound) %}{{ return(adapter.dispatch('get_powers_of_two', 'dbt')(upper_bound)) }}{% endmacro %}
{% macro default__get_powers_of_two(upper_bound) -%}
  {%- if upper_bound <= 0 -%}{{ exceptions.raise_compiler_error('upper bound must be positive') }}{%- endif -%}
  {%- for power in range(1, 100) -%}{%- if upper_bound <= 2 ** power -%}{{ return(power) }}{%- endif -%}{%- endfor -%}
{%- endmacro %}

{% macro concat(fields) %}{{ return(adapter.dispatch('concat', 'dbt')(fields)) }}{% endmacro %}
{% macro default__concat(fields) -%} concat({{ fields | join(', ') }}) {%- endmacro %}

{% macro length(expression) %}{{ return(adapter.dispatch('length', 'dbt')(expression)) }}{% endmacro %}
{% macro default__length(expression) -%} length({{ expression }}) {%- endmacro %}

{% macro position(substring_text, string_text) %}{{ return(adapter.dispatch('position', 'dbt')(substring_text, string_text)) }}{% endmacro %}
{% macro default__position(substring_text, string_text) -%} locate({{ substring_text }}, {{ string_text }}) {%- endmacro %}

{% macro replace(field, old_chars, new_chars) %}{{ return(adapter.dispatch('replace', 'dbt')(field, old_chars, new_chars)) }}{% endmacro %}
{% macro default__replace(field, old_chars, new_chars) -%} replace({{ field }}, {{ old_chars }}, {{ new_chars }}) {%- endmacro %}

{% macro right(string_text, length_expression) %}{{ return(adapter.dispatch('right', 'dbt')(string_text, length_expression)) }}{% endmacro %}
{% macro default__right(string_text, length_expression) -%} right({{ string_text }}, {{ length_expression }}) {%- endmacro %}

{% macro split_part(string_text, delimiter_text, part_number) %}{{ return(adapter.dispatch('split_part', 'dbt')(string_text, delimiter_text, part_number)) }}{% endmacro %}
{#- As on dbt-spark NULL where there are not so many parts; part 0 is the first. -#}
{% macro default__split_part(string_text, delimiter_text, part_number) -%}
  {%- set number = part_number or 1 -%}
  (case when (length({{ string_text }}) - length(replace({{ string_text }}, {{ delimiter_text }}, ''))) >= {{ (number | abs) - 1 }} * length({{ delimiter_text }})
    then split_part({{ string_text }}, {{ delimiter_text }}, {{ number }}) end)
{%- endmacro %}

{% macro _split_part_negative(string_text, delimiter_text, part_number) %}{{ return(dbt.default__split_part(string_text, delimiter_text, part_number)) }}{% endmacro %}

{% macro hash(field) %}{{ return(adapter.dispatch('hash', 'dbt')(field)) }}{% endmacro %}
{% macro default__hash(field) -%} md5(cast({{ field }} as string)) {%- endmacro %}

{% macro safe_cast(field, type) %}{{ return(adapter.dispatch('safe_cast', 'dbt')(field, type)) }}{% endmacro %}
{#- Where ANSI mode is off, as it always is here, a cast that fails is NULL. TRY_CAST would be NULL for '1.9' as int too. -#}
{% macro default__safe_cast(field, type) -%}
  {%- if field is string and (type | lower).startswith(('struct', 'array', 'map')) -%}
    cast({{ field.strip('"').strip("'") }} as {{ type }})
  {%- else -%}
    cast({{ field }} as {{ type }})
  {%- endif -%}
{%- endmacro %}

{% macro cast(field, type) %}{{ return(adapter.dispatch('cast', 'dbt')(field, type)) }}{% endmacro %}
{% macro default__cast(field, type) -%} cast({{ field }} as {{ type }}) {%- endmacro %}

{% macro cast_bool_to_text(field) %}{{ return(adapter.dispatch('cast_bool_to_text', 'dbt')(field)) }}{% endmacro %}
{% macro default__cast_bool_to_text(field) -%} cast({{ field }} as string) {%- endmacro %}

{% macro any_value(expression) %}{{ return(adapter.dispatch('any_value', 'dbt')(expression)) }}{% endmacro %}
{% macro default__any_value(expression) -%} any_value({{ expression }}) {%- endmacro %}

{% macro bool_or(expression) %}{{ return(adapter.dispatch('bool_or', 'dbt')(expression)) }}{% endmacro %}
{% macro default__bool_or(expression) -%} bool_or({{ expression }}) {%- endmacro %}

{% macro listagg(measure, delimiter_text="','", order_by_clause=none, limit_num=none) %}{{ return(adapter.dispatch('listagg', 'dbt')(measure, delimiter_text, order_by_clause, limit_num)) }}{% endmacro %}
{#- In the order that is asked for, by one expression, or else in the order of the values themselves, as are equal ones: the
    result of a query must follow from its rows. Dbt-spark knows no order. -#}
{% macro default__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set plain = measure | string | trim -%}
  {%- set distinct = plain.lower().startswith('distinct ') -%}
  {%- set value = (plain[8:] if distinct else plain) | trim -%}
  {%- set collect = 'collect_set' if distinct else 'collect_list' -%}
  {%- set sorted = "array_sort(" ~ collect ~ "(cast(" ~ value ~ " as string)))" -%}
  {%- if order_by_clause -%}
    {%- set order = modules.re.match("(?is)\\s*order\\s+by\\s+(.+?)(\\s+asc|\\s+desc)?(\\s+nulls\\s+(first|last))?\\s*$", order_by_clause | string) -%}
    {%- set key = order.group(1) if order else '' -%}
    {%- set falling = order and (order.group(2) or '') | lower | trim == 'desc' -%}
    {%- set way = 'false' if falling else 'true' -%}
    {%- if key | lower == value | lower -%}
      {%- set sorted = "transform(sort_array(" ~ collect ~ "(" ~ value ~ "), " ~ way ~ "), sml_item -> cast(sml_item as string))" -%}
    {%- elif order and not distinct and ',' not in modules.re.sub("\\([^()]*\\)|'[^']*'", "", key) -%}
      {#- A flag before the key says where NULLs come; by itself Spark has them first, and last in a falling order. -#}
      {%- set is_usual = (order.group(4) or '') | lower in ('', 'last' if falling else 'first') -%}
      {%- set item = "struct((" ~ key ~ ") is " ~ ("not " if is_usual else "") ~ "null as f, (" ~ key ~ ") as k, (" ~ value ~ ") as v)" -%}
      {%- set listed = "collect_list(case when (" ~ value ~ ") is not null then " ~ item ~ " end)" -%}
      {%- set sorted = "transform(sort_array(" ~ listed ~ ", " ~ way ~ "), sml_item -> cast(sml_item.v as string))" -%}
    {%- else -%}
      {%- do exceptions.warn("listagg: only an order by one expression is known, of distinct values by themselves; here the values are in their own order") -%}
    {%- endif -%}
  {%- endif -%}
  array_join({{ "slice(" ~ sorted ~ ", 1, " ~ limit_num ~ ")" if limit_num else sorted }}, {{ delimiter_text }})
{%- endmacro %}

{% macro array_construct(inputs=[], data_type=api.Column.translate_type('integer')) %}{{ return(adapter.dispatch('array_construct', 'dbt')(inputs, data_type)) }}{% endmacro %}
{% macro default__array_construct(inputs, data_type) -%}
  {%- if inputs -%}array({{ inputs | join(', ') }}){%- else -%}cast(array() as array<{{ data_type }}>){%- endif -%}
{%- endmacro %}
{% macro array_append(array, new_element) %}{{ return(adapter.dispatch('array_append', 'dbt')(array, new_element)) }}{% endmacro %}
{% macro default__array_append(array, new_element) -%} concat({{ array }}, array({{ new_element }})) {%- endmacro %}
{% macro array_concat(array_1, array_2) %}{{ return(adapter.dispatch('array_concat', 'dbt')(array_1, array_2)) }}{% endmacro %}
{% macro default__array_concat(array_1, array_2) -%} concat({{ array_1 }}, {{ array_2 }}) {%- endmacro %}

{% macro except() %}{{ return(adapter.dispatch('except', 'dbt')()) }}{% endmacro %}
{% macro default__except() %} except {% endmacro %}
{% macro intersect() %}{{ return(adapter.dispatch('intersect', 'dbt')()) }}{% endmacro %}
{% macro default__intersect() %} intersect {% endmacro %}
{% macro equals(expr1, expr2) %}{{ return(adapter.dispatch('equals', 'dbt')(expr1, expr2)) }}{% endmacro %}
{#- NULL equals NULL only where `flags:` of the project says so, as in dbt. -#}
{% macro default__equals(expr1, expr2) -%}
  {%- if adapter.behavior.enable_truthy_nulls_equals_macro.no_warn -%}
    (({{ expr1 }}) <=> ({{ expr2 }}))
  {%- else -%}
    ({{ expr1 }} = {{ expr2 }})
  {%- endif -%}
{%- endmacro %}

{% macro escape_single_quotes(expression) %}{{ return(adapter.dispatch('escape_single_quotes', 'dbt')(expression)) }}{% endmacro %}
{% macro default__escape_single_quotes(expression) -%} {{ expression | string | replace("\\", "\\\\") | replace("'", "\\'") }} {%- endmacro %}
{% macro string_literal(value) %}{{ return(adapter.dispatch('string_literal', 'dbt')(value)) }}{% endmacro %}
{% macro default__string_literal(value) -%} '{{ value }}' {%- endmacro %}

{% macro type_string() %}{{ return(adapter.dispatch('type_string', 'dbt')()) }}{% endmacro %}
{% macro default__type_string() -%} string {%- endmacro %}
{% macro type_timestamp() %}{{ return(adapter.dispatch('type_timestamp', 'dbt')()) }}{% endmacro %}
{% macro default__type_timestamp() -%} timestamp {%- endmacro %}
{% macro type_float() %}{{ return(adapter.dispatch('type_float', 'dbt')()) }}{% endmacro %}
{% macro default__type_float() -%} float {%- endmacro %}
{% macro type_numeric() %}{{ return(adapter.dispatch('type_numeric', 'dbt')()) }}{% endmacro %}
{% macro default__type_numeric() -%} decimal(28,6) {%- endmacro %}
{% macro type_bigint() %}{{ return(adapter.dispatch('type_bigint', 'dbt')()) }}{% endmacro %}
{% macro default__type_bigint() -%} bigint {%- endmacro %}
{% macro type_int() %}{{ return(adapter.dispatch('type_int', 'dbt')()) }}{% endmacro %}
{% macro default__type_int() -%} integer {%- endmacro %}
{% macro type_boolean() %}{{ return(adapter.dispatch('type_boolean', 'dbt')()) }}{% endmacro %}
{% macro default__type_boolean() -%} boolean {%- endmacro %}
