"""What templates may call that neither reads the project nor asks a lake: Python modules, rarer names of dbt."""
