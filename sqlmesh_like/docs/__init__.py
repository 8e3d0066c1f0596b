"""The documentation site: `content` gathers one JSON value, `site` puts it into one self-contained HTML file."""
