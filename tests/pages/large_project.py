"""A project of any number of nodes, in folders as warehouses have them: layers, in each the domains of a company."""

from __future__ import annotations

import random
from pathlib import Path

DOMAINS = ("sales", "finance", "marketing", "logistics", "people", "support", "web", "risk", "estate", "tax")
LAYERS = ("staging", "intermediate", "marts", "reports")
_COLUMNS = "[{name: id, data_type: int}, {name: day, data_type: date}, {name: amount, data_type: bigint}]"
_SHARES = {"source": 0.12, "staging": 0.24, "intermediate": 0.28, "marts": 0.24, "reports": 0.12}


def make_large_project(root: Path, nodes: int, *, is_flat: bool = False, seed: int = 7) -> Path:
    """Sources, and four layers of models by domain; most read their own domain, some another's.

    Flat, all models lie in one folder.
    """
    chance = random.Random(seed)
    counts = {layer: max(1, round(nodes * share)) for layer, share in _SHARES.items()}
    counts["reports"] += nodes - sum(counts.values())
    (root / "models").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "company"\n')
    (root / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}\n")
    domains = DOMAINS[: max(2, min(len(DOMAINS), nodes // 12))]
    tables = [(domains[number % len(domains)], f"table_{number:03}") for number in range(counts["source"])]
    (root / "models/sources.yml").write_text(_sources(tables))
    earlier = {domain: [f"source('{domain}', '{name}')" for of, name in tables if of == domain] for domain in domains}
    for layer in LAYERS:
        made: dict[str, list[str]] = {domain: [] for domain in domains}
        for number in range(counts[layer]):
            domain = domains[number % len(domains)]
            inputs = {chance.choice(earlier[domain])}
            if layer != "staging":
                inputs |= {chance.choice(earlier[domain]) for _ in range(chance.randrange(3))}
                if chance.random() < 0.15:
                    inputs.add(chance.choice(earlier[chance.choice(domains)]))
            name = f"{layer[:3]}_{domain}_{number:03}"
            folder = root / "models" if is_flat else root / "models" / layer / domain
            _write_model(folder / f"{name}.sql", sorted(inputs), is_sum=layer == "marts")
            made[domain].append(f"ref('{name}')")
        earlier = {domain: made[domain] or earlier[domain] for domain in domains}
    return root


def _sources(tables: list[tuple[str, str]]) -> str:
    lines = ["sources:"]
    for domain in dict.fromkeys(of for of, _ in tables):
        lines += [f"  - name: {domain}", "    schema: ods", "    tables:"]
        for of, name in tables:
            if of == domain:
                columns = (
                    "[{name: id, data_type: int}, {name: day, data_type: date}, {name: amount, data_type: bigint}]"
                )
                lines.append(f"      - {{name: {name}, columns: {columns}}}")
    return "\n".join(lines) + "\n"


def _write_model(path: Path, inputs: list[str], *, is_sum: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = inputs
    joins = "".join(f"\njoin {{{{ {other} }}}} t{n} on t{n}.id = t.id" for n, other in enumerate(others))
    columns = "t.id, t.day, sum(t.amount) as amount" if is_sum else "t.id, t.day, t.amount"
    path.write_text(f"select {columns}\nfrom {{{{ {first} }}}} t{joins}" + ("\ngroup by t.id, t.day" if is_sum else ""))
