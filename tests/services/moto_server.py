"""Moto's S3 over HTTP, as a program: `python moto_server.py PORT`. It answers one request after another.

So conditional puts that race have one winner, which moto's own start, a thread a request, does not promise.
"""

from __future__ import annotations

import sys

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
