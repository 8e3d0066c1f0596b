{# The four data tests that every project has. The rows a query returns are the failures. #}

{% test not_null(model, column_name) %}
select * from {{ model }} where {{ column_name }} is null
{% endtest %}

{% test unique(model, column_name) %}
select {{ column_name }} as unique_field, count(*) as n_records
from {{ model }}
where {{ column_name }} is not null
group by {{ column_name }}
having count(*) > 1
{% endtest %}

{% test accepted_values(model, column_name, values, quote=true) %}
{%- if not values %}{% do exceptions.raise_compiler_error('accepted_values needs values: a list that is not empty') %}{% endif %}
select {{ column_name }} as value_field, count(*) as n_records
from {{ model }}
where {{ column_name }} not in (
  {%- for value in values %}
  {%- if not loop.first %}, {% endif %}
  {%- if quote %}'{{ value | string | replace("\\", "\\\\") | replace("'", "\\'") }}'{% else %}{{ value }}{% endif %}
  {%- endfor -%}
)
group by {{ column_name }}
{% endtest %}

{% test relationships(model, column_name, to, field) %}
{%- if not to or not field %}{% do exceptions.raise_compiler_error('relationships needs to and field') %}{% endif %}
with child as (select {{ column_name }} as from_field from {{ model }} where {{ column_name }} is not null),
parent as (select {{ field }} as to_field from {{ to }})
select child.from_field from child left join parent on child.from_field = parent.to_field where parent.to_field is null
{% endtest %}

{% macro get_where_subquery(relation) %}{{ return(adapter.dispatch('get_where_subquery', 'dbt')(relation)) }}{% endmacro %}
{% macro default__get_where_subquery(relation) -%}
  {%- set where = config.get('where') -%}
  {%- if where -%}(select * from {{ relation }} where {{ where }}){%- else -%}{{ return(relation) }}{%- endif -%}
{%- endmacro %}
