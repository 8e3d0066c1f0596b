"""Lines → events (`events`) → typed rows of one table (`decode`), or the reason why not (`event_validation`)."""
