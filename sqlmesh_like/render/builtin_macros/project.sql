{# Macros of dbt that projects and packages call or build upon. #}

{% macro should_store_failures() %}{{ return(config.get('store_failures', false) or false) }}{% endmacro %}

{% macro should_full_refresh() %}
  {%- set own = config.get('full_refresh') -%}
  {{ return(flags.FULL_REFRESH if own is none else own) }}
{% endmacro %}

{% macro generate_schema_name(custom_schema_name=none, node=none) %}{{ return(adapter.dispatch('generate_schema_name', 'dbt')(custom_schema_name, node)) }}{% endmacro %}
{% macro generate_alias_name(custom_alias_name=none, node=none) %}{{ return(adapter.dispatch('generate_alias_name', 'dbt')(custom_alias_name, node)) }}{% endmacro %}
{% macro generate_database_name(custom_database_name=none, node=none) %}{{ return(adapter.dispatch('generate_database_name', 'dbt')(custom_database_name, node)) }}{% endmacro %}
{# Spark has no databases above schemas. #}
{% macro default__generate_database_name(custom_database_name=none, node=none) %}{{ return(none) }}{% endmacro %}

{% macro default__generate_schema_name(custom_schema_name, node) -%}
  {%- if custom_schema_name is none -%}{{ target.schema }}{%- else -%}{{ target.schema }}_{{ custom_schema_name | trim }}{%- endif -%}
{%- endmacro %}

{% macro generate_schema_name_for_env(custom_schema_name, node) -%}
  {%- if target.name == 'prod' and custom_schema_name is not none -%}{{ custom_schema_name | trim }}{%- else -%}{{ target.schema }}{%- endif -%}
{%- endmacro %}

{% macro default__generate_alias_name(custom_alias_name=none, node=none) -%}
  {{ custom_alias_name | trim if custom_alias_name else node.name ~ ('_v' ~ node.version | replace('.', '_') if node.version else '') }}
{%- endmacro %}

{# Hooks inside or outside of a transaction: there are none here, a statement is one of its own. #}
{% macro before_begin(sql) %}{{ return(sql) }}{% endmacro %}
{% macro in_transaction(sql) %}{{ return(sql) }}{% endmacro %}
{% macro after_commit(sql) %}{{ return(sql) }}{% endmacro %}

{% macro get_columns_in_query(select_sql) %}
  {%- set found = run_query('select * from (' ~ select_sql ~ ') as __dbt_sbq limit 0') -%}
  {{ return(found.columns | map(attribute='name') | list if found is not none else []) }}
{% endmacro %}

{% macro get_or_create_relation(database, schema, identifier, type) %}
  {%- set found = adapter.get_relation(database, schema, identifier) -%}
  {%- if found -%}{{ return([true, found]) }}{%- endif -%}
  {{ return([false, api.Relation.create(database=database, schema=schema, identifier=identifier, type=type)]) }}
{% endmacro %}

{% macro drop_relation_if_exists(relation) %}
  {%- if relation is not none %}{{ adapter.drop_relation(relation) }}{% endif -%}
{% endmacro %}

{% macro make_temp_relation(base_relation, suffix='__dbt_tmp') %}
  {{ return(base_relation.incorporate(path={'identifier': base_relation.identifier ~ suffix})) }}
{% endmacro %}

{% macro make_intermediate_relation(base_relation, suffix='__dbt_tmp') %}
  {{ return(make_temp_relation(base_relation, suffix)) }}
{% endmacro %}

{% macro make_backup_relation(base_relation, backup_relation_type, suffix='__dbt_backup') %}
  {{ return(make_temp_relation(base_relation, suffix).incorporate(type=backup_relation_type)) }}
{% endmacro %}

{% macro get_quoted_csv(column_names) %}
  {%- set quoted = [] -%}
  {%- for name in column_names %}{% do quoted.append(adapter.quote(name)) %}{% endfor -%}
  {{ return(quoted | join(', ')) }}
{% endmacro %}

{% macro diff_columns(source_columns, target_columns) %}
  {%- set known, missing = target_columns | map(attribute='column') | map('lower') | list, [] -%}
  {%- for column in source_columns if column.column | lower not in known %}{% do missing.append(column) %}{% endfor -%}
  {{ return(missing) }}
{% endmacro %}

{% macro set_sql_header(config) -%}
  {{- config.set('sql_header', caller()) -}}
{%- endmacro %}
