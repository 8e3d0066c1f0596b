"""Data tests and unit tests as YAML declares them; `run` runs them."""
