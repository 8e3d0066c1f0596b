"""Files of a project → `ParsedProject`. No Jinja beyond YAML values, no SQL, no engine.

`loader` finds the project and joins its packages; `package_reader` reads one package's models, seeds, tests and
macros; `reading` opens files and YAML, `properties`, `sources`, `exposures`, `semantic` and `testing` say what it
means; `config` and `folder_config` decide which setting applies; `nodes` holds the frozen values that all later layers
read; `profile` reads the target.
"""
