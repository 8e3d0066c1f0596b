"""Results → files: JSON and a plot of each suite and scale, and one `README.md` of all results in the folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import vl_convert

from bench.result import WHOLE, Figure, SuiteResult, from_json, means_of, to_json

ORDER = (
    "tpch",
    "five_models",
    "fixed_costs",
    "small_batches",
    "ingestion",
    "kafka",
    "database",
    "change_reading",
    "many_models",
    "releases",
)
DEFAULT_SCALE = 0.1
_MOST_NAMED = 60
"""Above this number of figures a plot names only groups; each figure is a stroke in the line of its group."""
_BYTES = 1024 * 1024


def write_result(out: Path, result: SuiteResult, run: Mapping[str, object]) -> None:
    """Write the result of one suite, and the page of all results."""
    out.mkdir(parents=True, exist_ok=True)
    name = _file_name(result.suite, run)
    (out / f"{name}.json").write_text(json.dumps(to_json(result, run), indent=1, ensure_ascii=False) + "\n")
    if result.figures:
        svg = vl_convert.vegalite_to_svg(json.dumps(plot(result)))
        (out / f"{name}.svg").write_text(svg, encoding="utf-8")
    write_page(out)


def _file_name(suite: str, run: Mapping[str, object]) -> str:
    """Return the name of a result's files: the suite's, with the scale appended unless it is the default one."""
    return suite if run["scale"] == DEFAULT_SCALE else f"{suite}-{run['scale']:g}"


def write_page(out: Path) -> None:
    results = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("*.json")]
    known = sorted(results, key=lambda data: (ORDER.index(data["suite"]), data["run"]["scale"]))
    (out / "README.md").write_text("\n".join(page(known)) + "\n", encoding="utf-8")


def page(results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the Markdown of all suites, line by line."""
    yield "# Benchmarks"
    yield ""
    yield "Written by `python -m bench`; [performance.md](../performance.md) says how to read it. Each ratio is of two"
    yield "times measured in turns in one run on one machine: above 1 `sml` is the faster one. The median of the"
    yield "repetitions stands first, then their least and largest value. Seconds are context, no promise."
    for data in results:
        result = from_json(data)
        yield from ("", f"## {result.title}", "", f"`python -m bench {result.suite}`: {result.ratio_of}.")
        yield f"{_described(data['run'])}."
        yield ""
        for reason in result.skipped:
            yield f"Skipped: {reason}"
        if result.figures:
            yield from (f"![{result.title}]({_file_name(result.suite, data['run'])}.svg)", "")
            yield from _tables(result)
        yield from _facts(result.facts)


def _tables(result: SuiteResult) -> Iterator[str]:
    groups = list(dict.fromkeys(figure.group for figure in result.figures))
    if len(result.figures) > _MOST_NAMED:
        yield "| | figures | geometric mean | spread of the mean | least | largest | below 1 |"
        yield "|---|---:|---:|---:|---:|---:|---:|"
        for group in groups:
            figures = [f for f in result.figures if f.group == group and f.name != WHOLE]
            if not figures:
                continue
            ratios, means = sorted(figure.ratio for figure in figures), means_of(figures)
            mean = f"**{median(means):.2f}** | {means[0]:.2f}–{means[-1]:.2f}"
            below = sum(ratio < 1 for ratio in ratios)
            yield f"| {group} | {len(ratios)} | {mean} | {ratios[0]:.2f} | {ratios[-1]:.2f} | {below} |"
        yield ""
    for group in groups:
        if len(result.figures) > _MOST_NAMED:
            yield from (f"<details><summary>{group}</summary>", "")
        yield f"| {group} | ratio | spread | seconds | done |"
        yield "|---|---:|---:|---:|---|"
        yield from (_row(figure) for figure in result.figures if figure.group == group)
        yield ""
        if len(result.figures) > _MOST_NAMED:
            yield from ("</details>", "")


def _row(figure: Figure) -> str:
    low, high = figure.spread
    seconds = f"{sorted(figure.other)[len(figure.other) // 2]:.2f} ÷ {sorted(figure.ours)[len(figure.ours) // 2]:.2f}"
    facts = "; ".join(_fact(name, value) for name, value in figure.facts.items())
    return f"| {figure.name} | **{figure.ratio:.2f}** | {low:.2f}–{high:.2f} | {seconds} | {facts} |"


def _fact(name: str, value: object) -> str:
    spoken = name.replace("_", " ")
    if isinstance(value, dict):
        return f"{spoken}: {', '.join(_fact(str(key), each) for key, each in value.items())}"
    if isinstance(value, list):
        return f"{spoken} {'–'.join(f'{each:,.2f}' for each in value)}"
    if isinstance(value, int) and "bytes" in name:
        return f"{spoken.replace('bytes', 'MB')} {value / _BYTES:,.1f}"
    if name == "strategy":
        return str(value)
    return f"{spoken} {value:,.2f}" if isinstance(value, float) else f"{spoken} {value:,}"


def _facts(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if isinstance(value, dict) and all(isinstance(each, dict) for each in value.values()):
            yield from ("", f"{name}:", "")
            yield from (f"- {_fact(str(key), each)}" for key, each in value.items())
        else:
            yield f"- {_fact(name, value)}"


def _described(run: Mapping[str, Any]) -> str:
    return "; ".join(f"{name} {value}" for name, value in run.items())


def plot(result: SuiteResult) -> dict[str, object]:
    """Return a Vega-Lite specification: ratios on a logarithmic axis, a line at 1, the spread of each as a rule."""
    is_named = len(result.figures) <= _MOST_NAMED
    values = [
        {"group": f.group, "name": f.name, "ratio": f.ratio, "low": f.spread[0], "high": f.spread[1]}
        for f in result.figures
        if is_named or f.name != WHOLE
    ]
    line = {"field": "name" if is_named else "group", "type": "nominal", "title": None, "sort": None}
    x = {"type": "quantitative", "scale": {"type": "log"}, "axis": {"format": "~g"}}
    ratio = {**x, "field": "ratio", "title": "ratio (above 1: sml is faster)"}
    color = {"field": "group", "type": "nominal", "title": None, "legend": {"orient": "bottom"} if is_named else None}
    dodge = {"yOffset": {"field": "group"}} if is_named else {}
    points: dict[str, object] = {"type": "point", "filled": True, "size": 60} if is_named else {"type": "tick"}
    layers: list[dict[str, object]] = [
        {"mark": {"type": "rule", "strokeDash": [4, 3], "color": "#888"},
         "encoding": {"x": {**x, "datum": 1}}},
        {"mark": points, "encoding": {"x": ratio, "y": line, "color": color, **dodge}},
    ]  # fmt: skip
    if is_named:
        spread = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": line, "color": color, **dodge}
        layers.append({"mark": "rule", "encoding": spread})
    else:
        layers.append({
            "transform": [{"calculate": "log(datum.ratio)", "as": "l"},
                          {"aggregate": [{"op": "mean", "field": "l", "as": "l"}], "groupby": ["group"]},
                          {"calculate": "exp(datum.l)", "as": "mean"}],
            "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 90, "color": "black"},
            "encoding": {"x": {**x, "field": "mean"}, "y": line},
        })  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": result.title,
        "width": 560,
        "height": {"step": 16 if is_named else 26},
        "background": "white",
        "data": {"values": values},
        "layer": layers,
    }
