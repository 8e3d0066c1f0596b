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
select child.{{ column_name }} as from_field
from {{ model }} as child
left join {{ to }} as parent on child.{{ column_name }} = parent.{{ field }}
where child.{{ column_name }} is not null and parent.{{ field }} is null
{% endtest %}

{% macro sml_filtered(relation, condition) -%}
(select * from {{ relation }} where {{ condition }})
{%- endmacro %}
