"""Files and YAML of a project as values with line and column; `file_dependencies` records what was read."""
