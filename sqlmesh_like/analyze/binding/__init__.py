"""A parsed SELECT → algebra: `binder` in the order of the clauses, `scope` for names; one module per clause."""
