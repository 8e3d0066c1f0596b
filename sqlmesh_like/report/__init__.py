"""Tables → one HTML page with charts.

`chart` is the declaration, `chart_inference` chooses a chart where none is declared, `date_columns` tells days from
moments. `drawing` renders Vega-Lite to SVG, `text_summary` says in words what a chart shows, `page` puts it together.
"""
