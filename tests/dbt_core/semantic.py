"""A project with a semantic layer: each type of metric, saved queries, disabled ones, and a package with its own."""

from __future__ import annotations

FILES = {
    "dbt_project.yml": """
name: bakery
version: '1.0'
profile: lake
models: {bakery: {+materialized: table}}
metrics:
  +meta: {layer: gold}
  bakery: {drafts: {+enabled: "{{ target.name == 'prod' }}"}, semantic: {loaf_share: {+group: owners}}}
semantic-models: {bakery: {+meta: {made_by: ada}}}
saved-queries: {+cache: {enabled: true}, +export_as: view}
""",
    "profiles.yml": "lake: {target: d, outputs: {d: {type: duckdb, path: x.duckdb, schema: main}}}\n",
    "packages.yml": "packages: [{local: scales}]\n",
    "scales/dbt_project.yml": "name: scales\nversion: '1.0'\nsemantic-models: {+meta: {unit: gram}}\n",
    "scales/models/weighings.sql": "select 1 as weighing, 500 as grams, cast('2024-01-01' as date) as day",
    "scales/models/w.yml": """
semantic_models:
  - name: weighings
    model: ref('weighings')
    defaults: {agg_time_dimension: weighed_on}
    entities: [{name: weighing, type: primary}]
    dimensions: [{name: weighed_on, type: time, expr: day, type_params: {time_granularity: day}}]
    measures: [{name: grams, agg: sum, create_metric: true, label: Grams, description: what was weighed}]
""",
    "models/loaves.sql": "select 1 as id, 2 as guest, 3 as price, true as is_rye, cast('2024-01-01' as date) as day",
    "models/days.sql": "select cast('2024-01-01' as date) as date_day, 1 as shift",
    "models/read_by_version_v1.sql": "select 1 as id",
    "models/docs.md": "{% docs loaf %}\nA loaf, *baked*.\n{% enddocs %}\n",
    "models/models.yml": """
groups: [{name: owners, owner: {name: Ada}}]
models:
  - name: days
    time_spine:
      standard_granularity_column: date_day
      custom_granularities: [{name: shift}]
    columns: [{name: date_day, granularity: day}, {name: shift}]
  - {name: read_by_version, latest_version: 1, versions: [{v: 1}]}
""",
    "models/semantic/loaves.yml": """
semantic_models:
  - name: loaves
    label: Loaves
    description: "{{ doc('loaf') }}"
    model: ref('bakery', 'loaves')
    defaults: {agg_time_dimension: baked_on}
    primary_entity: loaf
    config: {group: owners, meta: {asked: true}}
    entities:
      - {name: guest, type: foreign, description: who bought it, role: buyer}
    dimensions:
      - {name: baked_on, type: time, expr: day, type_params: {time_granularity: day}}
      - name: rye
        type: categorical
        expr: is_rye
        label: Rye
        description: "{{ doc('loaf') }}"
        config: {meta: {a: 1}}
    measures:
      - {name: takings, agg: sum, expr: price, create_metric: true}
      - {name: loaf_count, agg: SUM, expr: 1, agg_time_dimension: baked_on}
      - name: dear
        agg: percentile
        expr: price
        agg_params: {percentile: 0.9, use_discrete_percentile: true}
      - name: last_price
        agg: max
        expr: price
        non_additive_dimension: {name: baked_on, window_choice: max, window_groupings: [guest]}
  - {name: by_version, model: "ref('read_by_version', v=1)"}
  - name: stopped
    model: ref('loaves')
    config: {enabled: false}
    measures: [{name: stopped_count, agg: count, create_metric: true}]
metrics:
  - name: loaf_total
    label: Loaves
    type: simple
    description: "{{ doc('loaf') }}"
    tags: [weekly, daily]
    type_params: {measure: loaf_count}
    filter: "{{ Dimension('loaf__rye') }} = true"
  - name: filled
    label: Filled
    type: simple
    meta: {given: outside}
    config: {meta: {given: inside}}
    type_params:
      measure:
        name: loaf_count
        filter: ["{{ Dimension('loaf__rye') }}", 1 = 1]
        alias: counted
        join_to_timespine: true
        fill_nulls_with: 0
""",
    "models/semantic/metrics.yml": """
metrics:
  - name: loaf_share
    label: Share
    type: ratio
    type_params: {numerator: takings, denominator: {name: loaf_total, filter: 1 = 1, alias: all_loaves}}
  - name: growth
    label: Growth
    type: derived
    type_params:
      expr: sold - sold_before + loaf_share
      metrics:
        - {name: takings, alias: sold}
        - {name: takings, offset_window: 2 months, alias: sold_before}
        - {name: loaf_share, offset_to_grain: month}
  - name: this_month
    label: This month
    type: cumulative
    type_params: {measure: takings, cumulative_type_params: {grain_to_date: month, period_agg: last}}
  - name: seven_days
    label: Seven days
    type: cumulative
    time_granularity: day
    type_params: {measure: takings, window: 7 days}
  - name: came_back
    label: Came back
    type: conversion
    type_params:
      conversion_type_params:
        base_measure: loaf_count
        conversion_measure: {name: loaf_count, alias: again}
        entity: guest
        calculation: conversions
        window: 7 days
        constant_properties: [{base_property: rye, conversion_property: rye}]
  - name: by_weight
    label: Weight
    type: derived
    type_params: {expr: grams, metrics: [grams]}
saved_queries:
  - name: report
    label: Report
    description: "{{ doc('loaf') }}"
    tags: [weekly, daily]
    config: {tags: [printed], group: owners}
    query_params:
      metrics: [loaf_total, grams, loaf_share]
      group_by: ["TimeDimension('metric_time', 'day')"]
      where: ["{{ Dimension('loaf__rye') }}"]
      order_by: ["Metric('loaf_total').descending(True)"]
      limit: 5
    exports:
      - {name: page, config: {export_as: table, schema: pages, alias: p}}
      - {name: view_of_it}
  - {name: unused, query_params: {metrics: [loaf_total]}, config: {enabled: false}}
exposures:
  - name: shelf
    type: dashboard
    owner: {name: Ada}
    depends_on: ["metric('loaf_total')", "metric('scales', 'grams')"]
""",
    "models/drafts/d.yml": "metrics: [{name: draft, label: D, type: simple, type_params: {measure: not_there}}]\n",
}
