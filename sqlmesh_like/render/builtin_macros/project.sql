{# Macros of dbt that projects and packages call or build upon. #}

{% macro should_store_failures() %}{{ return(config.get('store_failures', false) or false) }}{% endmacro %}

{% macro should_full_refresh() %}
  {%- set own = config.get('full_refresh') -%}
  {{ return(flags.FULL_REFRESH if own is none else own) }}
{% endmacro %}

{% macro generate_schema_name(custom_schema_name=none, node=none) %}
  {{- return(adapter.dispatch('generate_schema_name', 'dbt')(custom_schema_name, node)) -}}
{% endmacro %}

{% macro default__generate_schema_name(custom_schema_name, node) -%}
  {%- if custom_schema_name is none -%}{{ target.schema }}{%- else -%}{{ target.schema }}_{{ custom_schema_name | trim }}{%- endif -%}
{%- endmacro %}

{% macro generate_schema_name_for_env(custom_schema_name, node) -%}
  {%- if target.name == 'prod' and custom_schema_name is not none -%}{{ custom_schema_name | trim }}{%- else -%}{{ target.schema }}{%- endif -%}
{%- endmacro %}

{% macro generate_alias_name(custom_alias_name=none, node=none) %}
  {{- return(adapter.dispatch('generate_alias_name', 'dbt')(custom_alias_name, node)) -}}
{% endmacro %}

{% macro default__generate_alias_name(custom_alias_name=none, node=none) -%}
  {{ custom_alias_name | trim if custom_alias_name else node.name ~ ('_v' ~ node.version | replace('.', '_') if node.version else '') }}
{%- endmacro %}

{# Hooks inside or outside of a transaction: there are none here, a statement is one of its own. #}
{% macro before_begin(sql) %}{{ return(sql) }}{% endmacro %}
{% macro in_transaction(sql) %}{{ return(sql) }}{% endmacro %}
{% macro after_commit(sql) %}{{ return(sql) }}{% endmacro %}
