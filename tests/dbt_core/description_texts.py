"""Runs in dbt's own environment: renders descriptions as dbt does, and prints a text for each, or null for an error."""

import json
import sys


def main():
    from dbt.cli.main import dbtRunner
    from dbt.clients.jinja import get_rendered
    from dbt.context.docs import generate_runtime_docs_context
    from dbt.parser import manifest as parser

    contexts = []
    process = parser.ManifestLoader.process_docs

    def remember(self, config):
        node = next(iter(self.manifest.nodes.values()))
        contexts.append(generate_runtime_docs_context(config, node, self.manifest, config.project_name))
        process(self, config)

    parser.ManifestLoader.process_docs = remember
    dbtRunner().invoke(["parse", "--profiles-dir", ".", "--quiet", "--no-partial-parse"])
    texts = []
    for description in json.load(sys.stdin):
        try:
            texts.append(str(get_rendered(description, contexts[0])))
        except Exception:  # noqa: BLE001 - each has its own; what counts is that dbt stops
            texts.append(None)
    print()
    print(json.dumps(texts))


main()
