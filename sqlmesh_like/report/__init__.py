"""A page with charts of a lake's tables. A stage above `run`, whose rows it draws."""
