// The pages: each makes the content of <main>.
const heading = (text, ...more) => el("div", { class: "head" }, el("h1", { tabindex: -1 }, text), ...more);
const fact = (name, value) => value !== null && value !== undefined && value !== "" && el("div", {}, el("dt", {}, name), el("dd", {}, value));

function nodePage(node, options) {
  document.title = `${node.name} · ${data.project}`;
  const chosen = node.columns.find((column) => column.name.toLowerCase() === options.get("column")?.toLowerCase())?.name;
  const line = Number(options.get("line")) || 0;
  return [
    heading(node.name, el("p", { class: "badges" }, kindBadge(node), strategyBadge(strategyOf(node)), healthBadge(node), node.freshness?.status && status(node.freshness.status), node.tags.map((tag) => badge(tag, "tag")))),
    problemNotes(node), failingRowsPanel(node), prose(node.description), facts(node),
    argumentsPanel(node), lineagePanel(node, chosen, options.get("depth")), columnsPanel(node, chosen), planPanel(node), inputsPanel(node),
    testsPanel(node), codePanel(node, line), runsPanel(node), relationsPanel(node),
  ];
}

function facts(node) {
  const volume = node.lake?.volume, last = node.lake?.commits?.at(-1);
  const attached = byId.get(node.attached);
  const named = Object.entries(node.settings).map(([name, value]) => fact(name.replace("_", " "), Array.isArray(value) ? value.join(", ") : String(value)));
  return el("dl", { class: "facts" },
    fact("table", node.table), named,
    volume && [fact("rows", count(volume.rows)), fact("size", `${size(volume.bytes)} in ${plural(volume.files, "file")}`)],
    last && fact("written", `${moment(last.time)} UTC`),
    node.freshness?.max_loaded_at && fact("loaded up to", `${moment(node.freshness.max_loaded_at)} UTC`),
    node.lake && !node.lake.exists && !node.lake.problem && fact("in the lake", "not built yet"),
    attached && fact("of", el("a", { href: link(attached) }, attached.name)), fact("column", node.column),
    node.exposure_owner && fact("owner", [node.exposure_owner.name, node.exposure_owner.email].filter(Boolean).join(" · ")),
    fact("kind", node.exposure_type), fact("maturity", node.exposure_maturity), node.exposure_url && fact("address", outside(node.exposure_url)),
    node.result && fact("last call", [node.result.status, node.result.rows ? plural(node.result.rows, "row") : null, node.result.failures ? plural(node.result.failures, "failure") : null, node.result.seconds ? seconds(node.result.seconds) : null].filter(Boolean).join(", ")),
    fact("file", el("code", {}, node.path)), fact("stored in", node.location && el("code", {}, node.location)),
    Object.entries(node.meta).map(([name, value]) => fact(name, typeof value === "object" ? JSON.stringify(value) : String(value))));
}

// An address that the project names; followed only when it is clicked, and only where it is one of the web.
const outside = (url) => (/^https?:\/\//i.test(url) ? el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, url) : url);

function relationsPanel(node) {
  const list = (title, found) => found.length > 0 && el("div", {}, el("h3", {}, title), el("ul", { class: "links" }, found.map((one) => el("li", {}, el("a", { href: link(one) }, one.name), " ", kindBadge(one)))));
  const parents = node.parents.map((id) => byId.get(id));
  const children = node.children.map((id) => byId.get(id)).filter((one) => IN_GRAPH.has(one.type));
  return parents.length + children.length > 0 && section("Relations", "relations", el("div", { class: "columns2" }, list("Reads", parents), list("Read by", children)));
}

function overviewPage() {
  document.title = data.project;
  const of = (type) => nodes.filter((node) => node.type === type);
  const tiles = Object.entries(KINDS).filter(([type]) => of(type).length).map(([type, name]) => el("div", { class: `tile k-${type}` }, el("b", {}, count(of(type).length)), el("span", {}, of(type).length === 1 ? name.toLowerCase().replace(/s$/, "") : name.toLowerCase())));
  const tables = nodes.filter((node) => TABLES.has(node.type));
  const all = tables.flatMap((node) => node.columns), told = all.filter((column) => column.description);
  return [
    heading(data.project, el("p", { class: "lead" }, `Target ${data.target}, written ${moment(data.generated_at)} UTC by sml ${data.version}.`)),
    prose(data.overview), healthPanel(), freshnessPanel(of("source")), costPanel(), strategiesPanel(of("model")), graphPanel(),
    section("What there is", "contents", el("div", { class: "tiles" }, tiles, all.length > 0 && el("div", { class: "tile" }, el("b", {}, `${Math.round((100 * told.length) / all.length)}%`), el("span", {}, "columns described")))), groupsPanel(),
  ];
}

function strategiesPanel(models) {
  const planned = models.filter(strategyOf);
  if (!planned.length) return null;
  const groups = LADDER.map((strategy) => [strategy, planned.filter((node) => strategyOf(node) === strategy)]).filter(([, found]) => found.length);
  return section("How models are kept up to date", "strategies",
    el("div", { class: "share", role: "img", "aria-label": groups.map(([strategy, found]) => `${strategy}: ${found.length}`).join(", ") }, groups.map(([strategy, found]) => {
      const part = el("span", { class: `s-${strategy}`, title: `${strategy}: ${found.length}` });
      part.style.flexGrow = found.length;
      return part;
    })),
    el("ul", { class: "strategies" }, groups.map(([strategy, found]) => el("li", {}, strategyBadge(strategy), el("span", { class: "faint" }, count(found.length)),
      el("span", { class: "names" }, several(found, 12, (node) => el("a", { href: link(node) }, node.name)))))));
}

function graphPanel() {
  const ids = nodes.filter((node) => IN_GRAPH.has(node.type)).map((node) => node.id);
  if (!ids.length) return null;
  return section("Graph", "graph", graph(ids, { name: "overview", label: "All tables of the project" }), el("p", { class: "hint" }, el("a", { href: "#/graph" }, "On a page of its own, with a filter")));
}

// Late sources first, then those that were checked, then those nobody asked.
function freshnessPanel(sources) {
  if (!sources.length) return null;
  const order = { error: 0, "runtime error": 0, warn: 1, pass: 2 };
  const sorted = [...sources].sort((a, b) => (order[a.freshness?.status] ?? 3) - (order[b.freshness?.status] ?? 3) || a.name.localeCompare(b.name));
  const row = (node) => {
    const last = node.lake?.commits?.at(-1), late = node.problems.find((problem) => problem.kind === "stale");
    return el("tr", {}, el("th", { scope: "row" }, el("a", { href: link(node) }, node.name)), cell(node.freshness?.status ? status(node.freshness.status) : el("span", { class: "faint" }, "not checked"), late && [" ", since(late)]),
      cell(node.freshness?.max_loaded_at ? moment(node.freshness.max_loaded_at) : "–"), cell(last ? moment(last.time) : "–"), num(node.lake?.volume?.rows));
  };
  const heads = ["Source", "Freshness", "Loaded up to (UTC)", "Written (UTC)", "#Rows"], few = sorted.length > 9 ? sorted.slice(0, 8) : sorted, rest = sorted.slice(few.length);
  return section("Freshness of sources", "sources", table("Freshness of sources", heads, few.map(row)),
    rest.length > 0 && el("details", { class: "more" }, el("summary", {}, `and ${count(rest.length)} more`), table("The other sources", heads, rest.map(row))));
}

const groupsPanel = () => data.groups.length > 0 && section("Groups", "groups", el("ul", { class: "links" }, data.groups.map((group) => el("li", {}, el("strong", {}, group.name), " ", el("span", { class: "faint" }, [group.owner?.name, group.owner?.email].filter(Boolean).join(" · ")), prose(group.description, "prose small"),
  el("span", { class: "names" }, nodes.filter((node) => node.settings.group === group.name).map((node) => el("a", { href: link(node) }, node.name)))))));

const FILTERS = "Such as +orders+ tag:daily, path:models/marts,config.materialized:incremental, source:shop+ or result:fail";
function graphPage(options) {
  document.title = `Graph · ${data.project}`;
  const focus = byId.get(options.get("focus")), words = options.get("select") || "", all = nodes.filter((node) => IN_GRAPH.has(node.type)).map((node) => node.id);
  let ids = all, trouble = "";
  try { if (words) ids = inGraph(selected(words)); } catch (error) { if (!(error instanceof SelectionError)) throw error; trouble = error.message; }
  const field = el("input", { id: "filter", type: "search", value: words, placeholder: "Filter, as sml ls -s", "aria-label": "Filter by a selection", "aria-describedby": "filtered", autocomplete: "off", spellcheck: "false", title: FILTERS });
  const apply = () => { const wanted = field.value.trim(); go(wanted ? `#/graph?select=${encodeURIComponent(wanted)}` : "#/graph"); };
  const form = el("form", { class: "filter", role: "search", "aria-label": "Nodes of the graph", onsubmit: (event) => { event.preventDefault(); apply(); } }, field, el("button", { type: "submit" }, "Filter"),
    el("span", { id: "filtered", role: "status", class: trouble ? "trouble" : "faint" }, trouble || (words ? `${count(ids.length)} of ${plural(all.length, "node")}` : plural(all.length, "node"))));
  field.addEventListener("search", () => { if (!field.value && words) apply(); });
  return [el("div", { class: "whole" }, el("div", { class: "line-up" }, heading("Graph"), form),
    ids.length ? graph(ids, { center: ids.includes(focus?.id) ? focus.id : null, isWhole: true, name: `graph ${trouble ? "" : words}`, label: "All tables of the project" }) : el("p", { class: "lead" }, all.length ? "Nothing is selected." : "There is nothing yet."))];
}

function runsPage() {
  document.title = `Runs · ${data.project}`;
  const call = data.last_call, rows = nodes.filter((node) => node.result);
  const commits = nodes.flatMap((node) => (node.lake?.commits || []).map((commit) => ({ node, ...commit }))).sort((a, b) => b.time.localeCompare(a.time)).slice(0, 100);
  const order = { error: 0, fail: 0, warn: 1, skipped: 2 };
  rows.sort((a, b) => (order[a.result.status] ?? 3) - (order[b.result.status] ?? 3) || b.result.seconds - a.result.seconds);
  return [heading("Runs"),
    call ? section(`Last call: sml ${call.which || "run"}`, "call", el("p", { class: "lead" }, `Ended ${moment(call.at)} UTC after ${seconds(call.seconds || 0)}.`),
      table("Results of the last call", ["Node", "Status", "Strategy", "#Rows", "#Time", "Message"], rows.map((node) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: link(node) }, node.name)), cell(status(node.result.status)), cell(strategyBadge(node.result.strategy) || ""), num(node.result.rows), num(seconds(node.result.seconds || 0)), cell(el("span", { class: "message" }, node.result.message || "")))))) : el("p", { class: "lead" }, "No run has left its results in the target folder yet."),
    callsPanel(),
    commits.length > 0 && section("Commits of all tables", "commits", table("Commits of all tables, newest first", ["Time (UTC)", "Table", "Strategy", "#Inserts", "#Updates", "#Deletes", "#Bytes", "#Took"], commits.map((commit) => el("tr", {}, cell(moment(commit.time)), el("th", { scope: "row" }, el("a", { href: link(commit.node) }, commit.node.name)), cell(strategyBadge(commit.strategy) || badge(commit.kind)), num(commit.inserts), num(commit.updates), num(commit.deletes), num(size(commit.bytes)), num(seconds(commit.seconds))))))];
}

function callsPanel() {
  if (data.calls.length < 2) return null;
  const words = (call) => Object.entries(call.statuses).map(([word, number]) => `${count(number)} ${word}`).join(", ");
  const row = (call) => el("tr", {}, cell(moment(call.at)), cell(call.which || "run"), cell(hasFailed(call) ? status("fail") : status("pass"), ` ${words(call)}`), num(call.measured ? percent(call.read_bytes / call.rebuild_bytes) : null), num(call.rows), num(seconds(call.seconds || 0)));
  return section("Calls", "calls", table("Calls of this target, newest first", ["Ended (UTC)", "Command", "Results", "#Read of a rebuild", "#Rows", "#Time"], [...data.calls].reverse().map(row)));
}

function rulesPage(chosen) {
  document.title = `${chosen ? `${chosen} · ` : ""}Rules · ${data.project}`;
  const users = (id) => nodes.filter((node) => [...(node.plan?.reasons || []), ...(node.plan?.aggregates || []), ...(node.plan?.next_run_reasons || [])].some((found) => found.rule === id));
  return [heading("Rules", el("p", { class: "lead" }, "Every decision of a plan has one of these as its reason.")),
    el("dl", { class: "rules" }, data.rules.map((rule) => el("div", { id: `rule-${rule.id}`, class: rule.id === chosen ? "chosen" : null, tabindex: rule.id === chosen ? -1 : null }, el("dt", {}, el("a", { href: `#/rules/${rule.id}` }, rule.id)),
      el("dd", {}, rule.meaning, rule.advice && el("p", { class: "hint" }, `Cheaper: ${rule.advice}`), el("span", { class: "names" }, users(rule.id).map((node) => el("a", { href: link(node) }, node.name)))))))];
}

const missingPage = (what) => [heading("Not here"), el("p", { class: "lead" }, `This site has no page ${what}.`)];
