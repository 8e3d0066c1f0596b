"""Texts of CSV and YAML → values of Spark types.

`csv_file` gives fields and where they are, `seed_types` what a text is in a declared type, `seed_inference` what dbt
reads from a seed's texts, `fixture_values` what a row of a test means. Files, headers and keys are their callers'.
"""
