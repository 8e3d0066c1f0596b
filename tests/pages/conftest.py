"""The pages that are looked at: the site and the report of the projects of `tests/unit`, and a browser."""

from __future__ import annotations

from tests.browser import browser as browser
from tests.unit.docs.conftest import site as site
from tests.unit.report.conftest import report_page as report_page
