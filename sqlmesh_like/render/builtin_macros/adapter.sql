{# Macros of dbt's adapters that packages and projects call by their names. #}

{# As in dbt-spark: the value, or an error of Spark where the function gives none of a value that is there. #}
{% macro assert_not_null(function, arg) %}
  {{- return(adapter.dispatch('assert_not_null', 'dbt')(function, arg)) -}}
{% endmacro %}

{% macro default__assert_not_null(function, arg) -%}
  coalesce({{ function }}({{ arg }}), nvl2({{ arg }}, assert_true({{ function }}({{ arg }}) is not null), null))
{%- endmacro %}

{% macro set_sql_header(config) -%}
  {{- config.set('sql_header', caller()) -}}
{%- endmacro %}

{% macro get_quoted_csv(column_names) %}
  {%- set quoted = [] -%}
  {%- for name in column_names -%}{%- do quoted.append(adapter.quote(name)) -%}{%- endfor -%}
  {{ return(quoted | join(', ')) }}
{% endmacro %}

{% macro drop_relation_if_exists(relation) %}
  {%- if relation is not none -%}{%- do adapter.drop_relation(relation) -%}{%- endif -%}
{% endmacro %}
