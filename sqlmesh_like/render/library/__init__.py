"""What templates have of Python and of the call: chosen functions of its modules, plain functions of dbt, flags."""
