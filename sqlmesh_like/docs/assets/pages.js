// The pages: each makes the content of <main>.
const heading = (text, ...more) => el("div", { class: "head" }, el("h1", { tabindex: -1 }, text), ...more);
const fact = (name, value) => value !== null && value !== undefined && value !== "" && el("div", {}, el("dt", {}, name), el("dd", {}, value));

function nodePage(node, options) {
  document.title = `${node.name} · ${data.project}`;
  const chosen = node.columns.find((column) => column.name.toLowerCase() === options.get("column")?.toLowerCase())?.name;
  const line = Number(options.get("line")) || 0;
  return [
    heading(node.name, el("p", { class: "badges" }, kindBadge(node), strategyBadge(strategyOf(node)), node.result && status(node.result.status), node.freshness?.status && status(node.freshness.status), node.tags.map((tag) => badge(tag, "tag")))),
    prose(node.description), facts(node), problem(node),
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

const problem = (node) => {
  const text = node.lake?.problem || (["error", "fail"].includes(node.result?.status) && node.result.message);
  return text ? el("p", { class: "note bad", role: "note" }, text) : null;
};

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
    prose(data.overview), el("div", { class: "tiles" }, tiles, all.length > 0 && el("div", { class: "tile" }, el("b", {}, `${Math.round((100 * told.length) / all.length)} %`), el("span", {}, "columns described"))),
    strategiesPanel(of("model")), graphPanel(), sourcesPanel(of("source")), groupsPanel(),
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
      el("span", { class: "names" }, found.slice(0, 12).map((node) => el("a", { href: link(node) }, node.name)), found.length > 12 ? `and ${count(found.length - 12)} more` : null)))));
}

function graphPanel() {
  const ids = nodes.filter((node) => IN_GRAPH.has(node.type)).map((node) => node.id);
  if (!ids.length || ids.length > 60) return null;
  return section("Graph", "graph", graph(ids, { label: "All tables of the project" }));
}

function sourcesPanel(sources) {
  if (!sources.length) return null;
  const rows = sources.map((node) => {
    const last = node.lake?.commits?.at(-1);
    return el("tr", {}, el("th", { scope: "row" }, el("a", { href: link(node) }, node.name)), num(node.lake?.volume?.rows), cell(last ? moment(last.time) : "–"), cell(node.freshness?.max_loaded_at ? moment(node.freshness.max_loaded_at) : "–"), cell(node.freshness?.status ? status(node.freshness.status) : el("span", { class: "faint" }, "not checked")));
  });
  return section("Sources", "sources", table("Sources", ["Source", "#Rows", "Written (UTC)", "Loaded up to (UTC)", "Freshness"], rows));
}

const groupsPanel = () => data.groups.length > 0 && section("Groups", "groups", el("ul", { class: "links" }, data.groups.map((group) => el("li", {}, el("strong", {}, group.name), " ", el("span", { class: "faint" }, [group.owner?.name, group.owner?.email].filter(Boolean).join(" · ")), prose(group.description, "prose small"),
  el("span", { class: "names" }, nodes.filter((node) => node.settings.group === group.name).map((node) => el("a", { href: link(node) }, node.name)))))));

function graphPage(options) {
  document.title = `Graph · ${data.project}`;
  const focus = byId.get(options.get("focus")), kinds = nodes.filter((node) => IN_GRAPH.has(node.type));
  const ids = kinds.map((node) => node.id);
  return [el("div", { class: "whole" }, heading("Graph", el("p", { class: "lead" }, `${plural(ids.length, "node")}. Drag to move, wheel to zoom; with the keyboard, Tab enters and the arrow keys go from card to card.`)),
    ids.length ? graph(ids, { center: focus?.id, height: "full", label: "All tables of the project" }) : el("p", {}, "There is nothing yet."))];
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
    commits.length > 0 && section("Commits of all tables", "commits", table("Commits of all tables, newest first", ["Time (UTC)", "Table", "Strategy", "#Inserts", "#Updates", "#Deletes", "#Bytes", "#Took"], commits.map((commit) => el("tr", {}, cell(moment(commit.time)), el("th", { scope: "row" }, el("a", { href: link(commit.node) }, commit.node.name)), cell(strategyBadge(commit.strategy) || badge(commit.kind)), num(commit.inserts), num(commit.updates), num(commit.deletes), num(size(commit.bytes)), num(seconds(commit.seconds))))))];
}

function rulesPage(chosen) {
  document.title = `${chosen ? `${chosen} · ` : ""}Rules · ${data.project}`;
  const users = (id) => nodes.filter((node) => [...(node.plan?.reasons || []), ...(node.plan?.aggregates || []), ...(node.plan?.next_run_reasons || [])].some((found) => found.rule === id));
  return [heading("Rules", el("p", { class: "lead" }, "Every decision of a plan has one of these as its reason.")),
    el("dl", { class: "rules" }, data.rules.map((rule) => el("div", { id: `rule-${rule.id}`, class: rule.id === chosen ? "chosen" : null, tabindex: rule.id === chosen ? -1 : null }, el("dt", {}, el("a", { href: `#/rules/${rule.id}` }, rule.id)),
      el("dd", {}, rule.meaning, rule.advice && el("p", { class: "hint" }, `Cheaper: ${rule.advice}`), el("span", { class: "names" }, users(rule.id).map((node) => el("a", { href: link(node) }, node.name)))))))];
}

const missingPage = (what) => [heading("Not here"), el("p", { class: "lead" }, `This site has no page ${what}.`)];
