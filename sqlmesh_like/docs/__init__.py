"""The documentation site, one self-contained HTML file.

`site_data` is its input, `content` turns that into one JSON value (`plans`, `columns`, `health` and `selection_facts`
build parts of it), and `site` puts it into the page, with the scripts of `assets/` and the `libraries` that draw its
graph and search it.
"""
