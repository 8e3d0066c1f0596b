"""The documentation site of a project: one HTML file that needs nothing else. Starts no JVM."""
