"""A project with dbt's documented examples, in words of our own, that DuckDB reads as Spark does."""

from __future__ import annotations

FILES = {
    "dbt_project.yml": """
name: cafe
version: '1.0'
profile: lake
models:
  cafe:
    +materialized: table
    staging: {+materialized: view, +tags: [daily, staging]}
    marts: {+tags: nightly}
vars: {smallest: 0}
data_tests:
  cafe:
    versioned: {+severity: warn, +tags: odd}
    described_in_yaml: {+severity: "{{ 'warn' if target.name == 'd' else 'error' }}"}
""",
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb, path: cafe.duckdb, schema: main}}}\n",
    "seeds/raw_guests.csv": "id,email,tld\n1,ada@home.org,home.org\n2,ben@work.com,work.com\n3,no-address,\n"
    "4,cy@x.net,x.net\n",
    "seeds/raw_domains.csv": "tld\nhome.org\nwork.com\n",
    "seeds/raw_bills.csv": "id,guest_id,status,amount,written\n1,1,placed,10,2024-01-01\n2,1,paid,20,2024-01-02\n"
    "3,2,paid,35,2024-01-03\n4,9,lost,-5,2024-01-04\n4,2,paid,7,2024-01-05\n",
    "models/staging/stg_guests.sql": "select id as guest_id, email, tld from {{ ref('raw_guests') }}",
    "models/staging/stg_bills.sql": "select id as bill_id, guest_id, status, amount, written "
    "from {{ ref('raw_bills') }}",
    "models/marts/dim_guests.sql": """
with checked as (
  select g.guest_id, g.email,
    coalesce(g.email like '%_@_%.%' and d.tld is not null, false) as is_valid_email
  from {{ ref('stg_guests') }} g
  left join {{ ref('raw_domains') }} d on g.tld = d.tld
)
select guest_id, email, is_valid_email from checked""",
    "models/marts/fct_bills.sql": """
{{ config(materialized='incremental', unique_key='bill_id', tags=['hourly']) }}
select bill_id, guest_id, amount, written from {{ ref('stg_bills') }} where amount >= {{ var('smallest') }}
{% if is_incremental() %} and written > (select max(written) from {{ this }}) {% endif %}""",
    "models/marts/above.sql": "select guest_id, sum(amount) as total from {{ ref('fct_bills') }} group by guest_id",
    "models/versioned/tills_v1.sql": "select 1 as till, 2 as floor",
    "models/versioned/tills_v2.sql": "select 2 as till union all select 2",
    "models/versioned/tills_v3.sql": "select 3 as till",
    "models/versioned/readers.sql": "select till from {{ ref('tills') }} union all "
    "select till from {{ ref('tills', v=1) }}",
    "models/versioned/p.yml": """
models:
  - name: tills
    latest_version: 2
    columns: [{name: till, data_tests: [unique]}, {name: floor, data_tests: [not_null]}]
    versions:
      - v: 1
      - {v: 2, columns: [{include: all, exclude: [floor]}]}
      - {v: 3, columns: [{include: [till]}], config: {tags: [soon]}}
  - name: readers
    columns:
      - name: till
        data_tests:
          - at_least: {arguments: {least: "{{ var('smallest') + 2 }}"}}
          - at_least: {name: few, arguments: {least: 5}, config: {where: "till < {{ var('smallest') }} + 1"}}
""",
    "tests/described_in_yaml.sql": "select bill_id from {{ ref('stg_bills') }} where amount > 30",
    "tests/described_too.sql": "select bill_id from {{ ref('stg_bills') }} where amount > 30",
    "tests/p.yml": "data_tests:\n- {name: described_too, description: d, config: {severity: warn, tags: [told]}}\n",
    "models/alone.sql": "{{ config(meta={'owner': 'ada'}, enabled=true) }} select 1 as one",
    "models/off.sql": "{{ config(enabled=false) }} select 1 as one",
    "macros/tests.sql": """
{% test is_even(model, column_name) %}
select {{ column_name }} from {{ model }} where {{ column_name }} % 2 = 1
{% endtest %}
{% test at_least(model, column_name, least=0) %}
select {{ column_name }} from {{ model }} where {{ column_name }} < {{ least }}
{% endtest %}""",
    "tests/no_negative_bill.sql": "select bill_id from {{ ref('stg_bills') }} where amount < 0",
    "tests/every_guest_has_an_id.sql": "{{ config(tags=['kept']) }} select * from {{ ref('stg_guests') }} "
    "where guest_id is null",
    "snapshots/kept.yml": """
snapshots:
  - name: bills_by_time
    relation: ref('fct_bills')
    config: {unique_key: bill_id, strategy: timestamp, updated_at: written}
  - name: guests_by_check
    relation: ref('stg_guests')
    config: {unique_key: guest_id, strategy: check, check_cols: [email], hard_deletes: invalidate}
""",
    "models/exposed.yml": """
exposures:
  - name: board
    type: dashboard
    owner: {name: Ada, email: ada@home.org}
    depends_on: [ref('above')]
groups: [{name: till, owner: {name: Ada}}]
""",
    "models/tested.yml": """
models:
  - name: stg_guests
    columns:
      - name: guest_id
        data_tests: [unique, not_null, {is_even: {config: {severity: warn}}}]
  - name: stg_bills
    columns:
      - {name: bill_id, data_tests: [not_null, {unique: {name: bills_are_counted_once}}]}
      - name: status
        data_tests:
          - accepted_values: {arguments: {values: [placed, paid]}}
          - accepted_values:
              name: known_states
              arguments: {values: [placed, paid, lost]}
      - name: guest_id
        data_tests:
          - relationships: {arguments: {to: ref('stg_guests'), field: guest_id}}
          - relationships:
              name: guests_of_paid_bills
              arguments: {to: ref('stg_guests'), field: guest_id}
              config: {where: "status = 'paid'"}
      - name: amount
        data_tests:
          - at_least: {arguments: {least: 0}, config: {warn_if: '>0', error_if: '>5'}}
          - at_least: {name: at_least_eight, arguments: {least: 8}, config: {error_if: '>1', limit: 2}}
          - at_least: {name: off_test, config: {enabled: false}}
  - name: dim_guests
    config: {group: till, access: public}
    columns: [{name: guest_id, data_tests: [unique]}]
unit_tests:
  - name: emails_are_checked
    model: dim_guests
    given:
      - input: ref('stg_guests')
        rows:
          - {guest_id: 1, email: cool@home.org, tld: home.org}
          - {guest_id: 2, email: cool@unknown.com, tld: unknown.com}
          - {guest_id: 3, email: badhome.org, tld: home.org}
          - {guest_id: 4, email: missing@dot, tld: missing@dot}
      - {input: ref('raw_domains'), rows: [{tld: home.org}]}
    expect:
      rows:
        - {email: cool@home.org, is_valid_email: true}
        - {email: cool@unknown.com, is_valid_email: false}
        - {email: badhome.org, is_valid_email: false}
        - {email: missing@dot, is_valid_email: false}
  - name: emails_in_csv
    model: dim_guests
    config: {tags: [texts]}
    given:
      - input: ref('stg_guests')
        format: csv
        rows: |
          guest_id,email,tld
          1,a@b.org,b.org
      - {input: ref('raw_domains'), format: sql, rows: "select 'b.org' as tld"}
    expect: {format: csv, rows: "email,is_valid_email\\na@b.org,true\\n"}
  - name: emails_expected_wrongly
    model: dim_guests
    given:
      - {input: ref('stg_guests'), rows: [{guest_id: 1, email: a@b.org, tld: b.org}]}
      - {input: ref('raw_domains'), rows: []}
    expect: {rows: [{email: a@b.org, is_valid_email: true}]}
  - name: whole_load
    model: fct_bills
    overrides: {macros: {is_incremental: false}, vars: {smallest: 2}}
    given:
      - input: ref('stg_bills')
        rows: [{bill_id: 1, amount: 5, written: 2024-01-01}, {bill_id: 2, amount: 1, written: 2024-01-02}]
    expect: {rows: [{bill_id: 1, amount: 5}]}
  - name: later_rows_only
    model: fct_bills
    overrides: {macros: {is_incremental: true}}
    given:
      - input: ref('stg_bills')
        rows: [{bill_id: 1, amount: 5, written: 2024-01-01}, {bill_id: 2, amount: 1, written: 2024-01-02}]
      - {input: this, rows: [{bill_id: 1, written: 2024-01-01}]}
    expect: {rows: [{bill_id: 2, amount: 1}]}
""",
}

SELECTIONS = [
    "stg_guests", "+dim_guests", "dim_guests+", "1+above", "above+1", "2+above", "@stg_bills", "+above+", "stg_*",
    "tag:daily", "tag:night*", "tag:daily,tag:staging", "tag:hourly tag:staging", "path:models/marts",
    "path:models/marts/above.sql", "file:above.sql", "cafe", "cafe.marts", "cafe.marts.above", "marts.*",
    "package:cafe",
    "config.materialized:view", "config.materialized:incremental", "config.tags:hourly", "config.meta.owner:ada",
    "config.severity:warn", "resource_type:seed", "resource_type:snapshot", "resource_type:unit_test",
    "test_type:singular", "test_type:generic", "test_type:unit", "test_type:data", "test_name:unique",
    "test_name:is_even", "exposure:board", "+exposure:board", "group:till", "access:public", "unit_test:whole_load",
    "raw_bills+", "dim_guests,test_type:data", "stg_bills,test_name:relationships", "tag:kept", "tag:texts",
    "bills_by_time", "+bills_by_time", "unit_test:emails*", "board", "unit_test:cafe.whole_load",
    "version:latest", "version:old", "version:prerelease", "version:none", "tills", "tills.v1", "tills_v2", "tills+",
    "tag:odd", "tag:soon", "tag:told", "file:above", "versioned", "cafe.versioned", "versioned.tills", "1+readers",
]  # fmt: skip
