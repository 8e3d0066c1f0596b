"""What templates can use of Python and of the call: selected functions of modules, plain functions of dbt, flags."""
