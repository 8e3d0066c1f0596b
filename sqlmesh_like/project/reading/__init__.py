"""Files and YAML of a project as values with line and column; `file_dependencies` notes what was read."""
