"""The documentation site, one self-contained HTML file.

`site_data` is its input, `content` turns that into one JSON value (`plans`, `columns`, `health` and `selection_facts`
build parts of it), and `site` inserts it into the page, with the scripts of `assets/` and the `libraries` that draw and
search its graph. `server` serves it.
"""
