"""How a long-running `sml watch` is monitored: its state (`watch_status`) over HTTP (`status_server`), and alerts.

Listeners of ingestion and of runs update the state; nothing here changes what a watch does.
"""
