"""Tables → one HTML page with charts.

`chart` is the declaration, `chart_inference` chooses a chart if none is declared, `date_columns` distinguishes days
from timestamps. `drawing` renders Vega-Lite to SVG, `text_summary` describes a chart in words, `page` assembles the
page.
"""
