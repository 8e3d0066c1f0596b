"""Environments: what one has, made beside production by runs, listed and dropped, and made production."""
