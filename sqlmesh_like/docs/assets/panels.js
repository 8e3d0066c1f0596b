// The parts of a node's page.
const section = (title, id, ...children) =>
  el("section", { class: "panel", "aria-labelledby": `h-${id}` }, el("h2", { id: `h-${id}` }, title), ...children);

const table = (caption, heads, rows, className = "") => {
  // On a phone each cell says what it is.
  for (const row of rows) [...row.children].forEach((one, at) => { if (one.textContent) one.dataset.head = heads[at].replace("#", ""); });
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    el("table", { class: className }, el("caption", { class: "offscreen" }, caption),
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col", class: head.startsWith("#") ? "num" : null }, head.replace("#", ""))))),
      el("tbody", {}, rows)));
};

const cell = (...children) => el("td", {}, ...children);
const num = (value) => el("td", { class: "num" }, value === null || value === undefined ? "–" : typeof value === "number" ? count(value) : value);

// A reason's place is a link to the marked line of the source.
const place = (node, found) => found.line && el("a", { class: "place", href: `${link(node)}?line=${found.line}` }, `${node.path}:${found.line}:${found.column}`);

function planPanel(node) {
  const plan = node.plan;
  if (!plan) return null;
  const steps = LADDER.map((strategy) => el("li", { class: `s-${strategy}`, "aria-current": strategy === plan.strategy ? "step" : null }, strategy.replace("_", " ")));
  const told = new Set(plan.aggregates.map((found) => `${found.rule}${found.line}${found.column}`));
  const reasons = plan.reasons.filter((found) => !told.has(`${found.rule}${found.line}${found.column}`));
  return section("Strategy", "plan",
    el("ol", { class: "ladder", "aria-label": "Strategies, cheapest first" }, steps),
    reasons.length > 0 && el("ul", { class: "reasons" }, reasons.map((found) => reason(node, found))),
    plan.aggregates.length > 0 && table("Aggregates", ["Aggregate", "Class", "Rule", "Place"], plan.aggregates.map((found) =>
      el("tr", {}, cell(el("code", {}, found.sql)), cell(badge(found.class, `a-${found.class}`)), cell(ruleLink(found.rule)), cell(place(node, found) || "")))),
    plan.next_run && nextRun(node, plan));
}

const reason = (node, found) => el("li", {}, ruleLink(found.rule), " ", el("span", {}, found.message), " ", place(node, found),
  found.hint && strategyOf(node) === "full_refresh" ? el("p", { class: "hint" }, `Cheaper: ${found.hint}`) : null);

function nextRun(node, plan) {
  const same = plan.next_run === plan.strategy || plan.next_run === "no_op";
  const why = same ? [] : plan.next_run_reasons.map((found) => el("li", {}, ruleLink(found.rule), " ", found.message));
  const cost = plan.estimate && plan.next_run !== "no_op" ? `: reads ${size(plan.estimate.read_bytes)}, rewrites ${size(plan.estimate.rewritten_bytes)}` : "";
  return el("div", { class: "next" }, el("p", {}, "A run now: ", strategyBadge(plan.next_run), cost), why.length > 0 && el("ul", { class: "reasons" }, why));
}

function inputsPanel(node) {
  const inputs = node.plan?.inputs || [];
  if (!inputs.length) return null;
  const rows = inputs.map((input) => {
    const other = byId.get(input.unique_id), now = !input.to ? "not there yet" : !input.from ? "not read yet" : input.from === input.to ? "up to date" : plural(input.pending_rows, "row") + " pending";
    return el("tr", {}, cell(other ? el("a", { href: link(other) }, other.name) : input.unique_id), cell(instant(input.from) || "–"), cell(instant(input.to) || "–"), cell(status(now.replace(/^\d.*/, "pending")), now.endsWith("pending") ? ` ${now}` : ""));
  });
  return section("Frontier", "frontier", el("p", { class: "lead" }, "How far this table has consumed each input, and how far the input is, in UTC."),
    table("Frontier", ["Input", "Consumed up to", "Input is at", "State"], rows));
}

function columnsPanel(node, chosen) {
  if (!node.columns.length) return node.type === "model" ? section("Columns", "columns", el("p", { class: "lead" }, "Not known before its inputs are: run ", el("code", {}, "sml ingest"), ", or declare the columns of its sources.")) : null;
  const isDescribed = node.columns.some((column) => column.description || column.tags.length);
  const tested = (column) => node.tests.filter((test) => test.column?.toLowerCase() === column.name.toLowerCase());
  const rows = node.columns.map((column) => {
    const isChosen = chosen?.toLowerCase() === column.name.toLowerCase();
    const name = hasLineage(node, column.name)
      ? el("button", { type: "button", class: "column", "aria-pressed": String(isChosen), title: "Trace this column", onclick: () => go(isChosen ? link(node) : `${link(node)}?column=${encodeURIComponent(column.name)}`) }, column.name)
      : el("span", { class: "column" }, column.name);
    return el("tr", { class: isChosen ? "chosen" : null }, el("th", { scope: "row" }, name), cell(el("code", { class: "type" }, column.type || "?"), column.origin && el("span", { class: "faint" }, ` ${column.origin}, not proven`)),
      isDescribed && cell(prose(column.description, "prose small"), column.tags.map((tag) => badge(tag, "tag"))), cell(tested(column).map(testChip)));
  });
  return section("Columns", "columns", table("Columns", ["Name", "Type", isDescribed && "Description", "Tests"].filter(Boolean), rows, "columns"));
}

function argumentsPanel(node) {
  if (!node.arguments?.length) return null;
  return section("Arguments", "arguments", table("Arguments", ["Name", "Type", "Description"], node.arguments.map((one) =>
    el("tr", {}, el("th", { scope: "row" }, el("code", {}, one.name)), cell(one.type || ""), cell(prose(one.description, "prose small"))))));
}

const testName = (test) => (/^(?:source_)?(unique|not_null|accepted_values|relationships)_/.exec(test.name)?.[1] || test.name);
const testChip = (test) => el("a", { class: `chip ${test.result ? `r-${test.result.status}` : ""}`, href: link(test), title: test.result ? `${test.name}: ${test.result.status}` : test.name }, testName(test));

function lineagePanel(node, chosen, depth) {
  if (!IN_GRAPH.has(node.type)) return null;
  const trace = chosen ? traced(node, chosen) : null;
  const name = trace ? null : `lineage ${node.id} ${depth || ""}`;
  const ids = trace ? [...trace.columns.keys()].map((number) => nodes[number].id) : around(node, depth);
  const steps = depth || (around(node, "all").length <= FEW ? "all" : "2");
  if (ids.length < 2 && !trace) return section("Lineage", "lineage", el("p", { class: "lead" }, "It reads nothing and nothing reads it."));
  const label = trace ? `Lineage of column ${chosen} of ${node.name}` : `Lineage of ${node.name}`;
  const choice = el("label", { class: "depth" }, "Steps ", el("select", { onchange: (event) => go(`${link(node)}?depth=${event.target.value}`) },
    ["1", "2", "3", "all"].map((one) => el("option", { value: one, selected: one === steps }, one))));
  const about = trace ? el("div", { class: "legend" }, el("strong", {}, `${node.name}.${chosen}`),
    ["copied", "computed", "aggregated"].map((how) => el("span", { class: `key h-${how}` }, how)),
    rowsDecidedBy(node, chosen).map(([role, edges]) => el("span", { class: "decided" }, `rows ${role} `, edges.map((edge, number) => [number ? ", " : "", el("a", { href: `${link(nodes[edge.from])}` }, `${nodes[edge.from].name}.${edge.column}`)]))),
    el("a", { class: "clear", href: link(node) }, "Whole lineage")) : el("div", { class: "legend" }, choice, el("a", { href: `#/graph?focus=${encodeURIComponent(node.id)}` }, "In the whole graph"));
  return section("Lineage", "lineage", about, graph(ids, { center: node.id, trace, name, label }));
}

// Ids of the nodes at most so many steps up and down; by default all while they can be taken in.
const FEW = 30;
function around(node, depth) {
  const reach = (next, limit) => {
    const found = new Map([[node.id, 0]]);
    for (const [id, steps] of found) {
      if (steps < limit) for (const other of next(byId.get(id))) if (!found.has(other) && IN_GRAPH.has(byId.get(other).type)) found.set(other, steps + 1);
    }
    return [...found.keys()];
  };
  const within = (limit) => [...new Set([...reach((one) => one.parents, limit), ...reach((one) => one.children, limit)])];
  if (depth && depth !== "all") return within(Number(depth));
  const whole = within(Infinity);
  return depth === "all" || whole.length <= FEW ? whole : within(2);
}

function codePanel(node, line) {
  const tabs = [["Source", node.raw], ["Compiled", node.compiled], ["Where the table exists", node.incremental], ["Delta program", node.program]].filter(([, sql]) => sql);
  if (!tabs.length) return null;
  const buttons = tabs.map(([name, sql], number) => el("button", { type: "button", role: "tab", id: `tab-${number}`, "aria-controls": "code", onclick: () => open(number) }, name));
  const holder = el("div", { id: "code", role: "tabpanel" });
  const open = (number) => {
    buttons.forEach((button, other) => { button.setAttribute("aria-selected", String(other === number)); button.tabIndex = other === number ? 0 : -1; });
    holder.setAttribute("aria-labelledby", `tab-${number}`);
    holder.replaceChildren(codeBlock(tabs[number][1], number === 0 ? line : 0));
  };
  const list = el("div", { role: "tablist", class: "tabs", "aria-label": "SQL of this node" }, buttons);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
    open(next);
    buttons[next].focus();
  });
  open(0);
  return section("SQL", "sql", list, holder);
}

function runsPanel(node) {
  const commits = node.lake?.commits || [];
  if (!commits.length) return null;
  const rows = [...commits].reverse().map((commit) => el("tr", {}, cell(moment(commit.time)), cell(strategyBadge(commit.strategy) || badge(commit.kind)), num(commit.inserts), num(commit.updates), num(commit.deletes), num(commit.rows), num(commit.files), num(size(commit.bytes)), num(seconds(commit.seconds))));
  return section("Commits", "commits", commits.length > 2 && bars(commits), table("Commits, newest first", ["Time (UTC)", "Strategy", "#Inserts", "#Updates", "#Deletes", "#Rows in files", "#Files", "#Bytes", "#Took"], rows));
}

// Rows changed by each commit, oldest left.
function bars(commits) {
  const sums = commits.map((commit) => commit.inserts + commit.updates + commit.deletes), most = Math.max(...sums, 1);
  const width = 100 / commits.length, parts = [];
  commits.forEach((commit, number) => {
    let y = 40;
    for (const kind of ["inserts", "updates", "deletes"]) {
      const height = commit[kind] ? Math.max((commit[kind] / most) * 38, 0.8) : 0;
      y -= height;
      if (height) parts.push(svg("rect", { class: `b-${kind}`, x: number * width + width * 0.15, y, width: width * 0.7, height }, svg("title", {}, `${moment(commit.time)}: ${plural(commit[kind], kind.slice(0, -1))}`)));
    }
  });
  return el("figure", { class: "bars" }, svg("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": `Rows changed by each of the last ${commits.length} commits, at most ${count(most)}` }, parts),
    el("figcaption", {}, ["inserts", "updates", "deletes"].map((kind) => el("span", { class: `key b-${kind}` }, kind))));
}

// A few of the rows that a test returned in the last call.
function failingRowsPanel(node) {
  const found = node.result?.failing_rows;
  if (!found?.rows?.length) return null;
  const rest = (node.result.failures || 0) - found.rows.length;
  return section("Rows that failed", "failing", table("Rows that failed in the last call", found.columns, found.rows.map((row) => el("tr", {}, row.map((value) => cell(value === null ? el("span", { class: "faint" }, "null") : value))))),
    rest > 0 && el("p", { class: "hint" }, `and ${count(rest)} more`));
}

function testsPanel(node) {
  if (!node.tests.length) return null;
  const rows = node.tests.map((test) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: link(test) }, test.name)), cell(test.column || ""), cell(test.settings.severity || ""), cell(test.result ? status(test.result.status) : el("span", { class: "faint" }, "not in the last call"))));
  return section("Tests", "tests", table("Tests", ["Test", "Column", "Severity", "Last call"], rows));
}
