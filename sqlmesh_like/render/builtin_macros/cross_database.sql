{# dbt's cross-database macros in Spark SQL: https://docs.getdbt.com/reference/dbt-jinja-functions/cross-database-macros.
   Each goes through dispatch, so that a project replaces one by a macro `spark__<name>` of its own. #}

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
  {%- elif part == 'month' -%}
    {#- between two last days of months whole months, and one more for the later month's day being smaller -#}
    {%- set ends = "last_day(" ~ first ~ ") = " ~ first ~ " and last_day(" ~ second ~ ") = " ~ second -%}
    cast((year({{ second }}) - year({{ first }})) * 12 + month({{ second }}) - month({{ first }})
      + case when {{ first }} < {{ second }} and {{ ends }} and day({{ second }}) < day({{ first }}) then 1
        when {{ first }} > {{ second }} and {{ ends }} and day({{ second }}) > day({{ first }}) then -1 else 0 end as bigint)
  {%- elif part in ('week', 'quarter') -%}
    {%- set whole = ("datediff(" ~ second ~ ", " ~ first ~ ") / 7") if part == 'week' else ("months_between(" ~ second ~ ", " ~ first ~ ") / 3") -%}
    {%- set within = 'dayofweek(?)' if part == 'week' else '(dayofyear(?) - quarter(?) * 365 / 4)' -%}
    {%- set early, late = within | replace('?', first), within | replace('?', second) -%}
    (case when {{ first }} < {{ second }} then floor({{ whole }}) else ceil({{ whole }}) end
      + case when {{ first }} < {{ second }} and {{ late }} < {{ early }} then 1
        when {{ first }} > {{ second }} and {{ late }} > {{ early }} then -1 else 0 end)
  {%- elif part in ('hour', 'minute', 'second') -%}
    {%- set whole = "(unix_timestamp(" ~ second ~ ") - unix_timestamp(" ~ first ~ ")) / " ~ {'hour': 3600, 'minute': 60, 'second': 1}[part] -%}
    (case when {{ first }} < {{ second }} then ceil({{ whole }}) else floor({{ whole }}) end)
  {%- else -%}
    {{ exceptions.raise_compiler_error("datediff: unknown date part '" ~ datepart ~ "'; one of second, minute, hour, day, week, month, quarter, year") }}
  {%- endif -%}
{%- endmacro %}

{% macro date_trunc(datepart, date) %}{{ return(adapter.dispatch('date_trunc', 'dbt')(datepart, date)) }}{% endmacro %}
{% macro default__date_trunc(datepart, date) -%} date_trunc('{{ datepart }}', {{ date }}) {%- endmacro %}

{% macro last_day(date, datepart) %}{{ return(adapter.dispatch('last_day', 'dbt')(date, datepart)) }}{% endmacro %}
{% macro default__last_day(date, datepart) -%}
  {%- set part = datepart | string | lower -%}
  {%- if part == 'month' -%}
    last_day({{ date }})
  {%- elif part in ('week', 'quarter', 'year') -%}
    {%- set first = "cast(date_trunc('" ~ part ~ "', " ~ date ~ ") as date)" -%}
    date_add({{ "date_add(" ~ first ~ ", 7)" if part == 'week' else "add_months(" ~ first ~ ", " ~ (3 if part == 'quarter' else 12) ~ ")" }}, -1)
  {%- else -%}
    {{ exceptions.raise_compiler_error("last_day: unknown date part '" ~ datepart ~ "'; one of week, month, quarter, year") }}
  {%- endif -%}
{%- endmacro %}

{% macro date(year, month, day) %}{{ return(adapter.dispatch('date', 'dbt')(year, month, day)) }}{% endmacro %}
{% macro default__date(year, month, day) -%} make_date({{ year }}, {{ month }}, {{ day }}) {%- endmacro %}

{% macro current_timestamp() %}{{ return(adapter.dispatch('current_timestamp', 'dbt')()) }}{% endmacro %}
{% macro default__current_timestamp() -%} current_timestamp() {%- endmacro %}
{% macro current_timestamp_in_utc() -%} current_timestamp() {%- endmacro %}
{% macro current_timestamp_backcompat() -%} current_timestamp() {%- endmacro %}

{% macro date_spine(datepart, start_date, end_date) %}{{ return(adapter.dispatch('date_spine', 'dbt')(datepart, start_date, end_date)) }}{% endmacro %}
{% macro default__date_spine(datepart, start_date, end_date) -%}
  {%- set part = datepart | string | lower -%}
  {%- set step = "interval '3' month" if part == 'quarter' else "interval '1' " ~ part -%}
  select date_{{ part }}
  from (
    select explode(sequence(cast({{ start_date }} as timestamp), cast({{ end_date }} as timestamp), {{ step }})) as date_{{ part }}
  )
  where date_{{ part }} < cast({{ end_date }} as timestamp)
{%- endmacro %}

{% macro generate_series(upper_bound) %}{{ return(adapter.dispatch('generate_series', 'dbt')(upper_bound)) }}{% endmacro %}
{% macro default__generate_series(upper_bound) -%} select explode(sequence(1, {{ upper_bound }})) as generated_number {%- endmacro %}

{% macro get_powers_of_two(upper_bound) -%}
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

{% macro hash(field) %}{{ return(adapter.dispatch('hash', 'dbt')(field)) }}{% endmacro %}
{% macro default__hash(field) -%} md5(cast({{ field }} as string)) {%- endmacro %}

{% macro safe_cast(field, type) %}{{ return(adapter.dispatch('safe_cast', 'dbt')(field, type)) }}{% endmacro %}
{% macro default__safe_cast(field, type) -%}
  {%- if field is string and (type | lower).startswith(('struct', 'array', 'map')) -%}
    cast({{ field.strip('"').strip("'") }} as {{ type }})
  {%- else -%}
    try_cast({{ field }} as {{ type }})
  {%- endif -%}
{%- endmacro %}

{% macro cast(expression, data_type) %}{{ return(adapter.dispatch('cast', 'dbt')(expression, data_type)) }}{% endmacro %}
{% macro default__cast(expression, data_type) -%} cast({{ expression }} as {{ data_type }}) {%- endmacro %}

{% macro cast_bool_to_text(bool_expression) %}{{ return(adapter.dispatch('cast_bool_to_text', 'dbt')(bool_expression)) }}{% endmacro %}
{% macro default__cast_bool_to_text(bool_expression) -%} cast({{ bool_expression }} as string) {%- endmacro %}

{% macro any_value(expression) %}{{ return(adapter.dispatch('any_value', 'dbt')(expression)) }}{% endmacro %}
{% macro default__any_value(expression) -%} any_value({{ expression }}) {%- endmacro %}

{% macro bool_or(expression) %}{{ return(adapter.dispatch('bool_or', 'dbt')(expression)) }}{% endmacro %}
{% macro default__bool_or(expression) -%} bool_or({{ expression }}) {%- endmacro %}

{% macro listagg(measure, delimiter_text="','", order_by_clause=none, limit_num=none) %}{{ return(adapter.dispatch('listagg', 'dbt')(measure, delimiter_text, order_by_clause, limit_num)) }}{% endmacro %}
{#- Values in their own order, for the result of a query must follow from its rows. An order by the values themselves is
    kept, another one is not, as on dbt-spark. -#}
{% macro default__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set sorted = "array_sort(collect_list(cast(" ~ measure ~ " as string)))" -%}
  {%- if order_by_clause -%}
    {%- set order = order_by_clause | string | lower | trim -%}
    {%- set by = order.removeprefix('order by').removesuffix(' asc').removesuffix(' desc') | trim -%}
    {%- if by == measure | string | lower | trim -%}
      {%- set direction = 'false' if order.endswith(' desc') else 'true' -%}
      {%- set sorted = "cast(sort_array(collect_list(" ~ measure ~ "), " ~ direction ~ ") as array<string>)" -%}
    {%- else -%}
      {%- do exceptions.warn("listagg: order_by_clause is ignored on Spark where it is another column: the values are in their own order") -%}
    {%- endif -%}
  {%- endif -%}
  array_join({{ "slice(" ~ sorted ~ ", 1, " ~ limit_num ~ ")" if limit_num else sorted }}, {{ delimiter_text }})
{%- endmacro %}

{% macro array_construct(inputs=[], data_type='int') %}{{ return(adapter.dispatch('array_construct', 'dbt')(inputs, data_type)) }}{% endmacro %}
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
{% macro equals(expr1, expr2) -%} (({{ expr1 }}) <=> ({{ expr2 }})) {%- endmacro %}

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
{% macro default__type_numeric() -%} decimal(28, 6) {%- endmacro %}
{% macro type_bigint() %}{{ return(adapter.dispatch('type_bigint', 'dbt')()) }}{% endmacro %}
{% macro default__type_bigint() -%} bigint {%- endmacro %}
{% macro type_int() %}{{ return(adapter.dispatch('type_int', 'dbt')()) }}{% endmacro %}
{% macro default__type_int() -%} int {%- endmacro %}
{% macro type_boolean() %}{{ return(adapter.dispatch('type_boolean', 'dbt')()) }}{% endmacro %}
{% macro default__type_boolean() -%} boolean {%- endmacro %}
