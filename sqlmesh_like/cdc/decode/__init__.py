"""Lines → events (`events`) of some layouts (`event_layouts`) → typed rows of one table (`decode`), or the reason why
not (`event_validation`)."""
