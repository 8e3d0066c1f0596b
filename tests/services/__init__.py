"""Real services that tests start on loopback and stop: no container engine is needed."""
