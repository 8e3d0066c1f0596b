// What is wrong and what runs cost: on the overview, on a node's page, and on the cards of graphs.
const KIND_WORDS = { failed: "failed", warned: "warned", stale: "stale" };
const WORSE = ["failed", "warned", "stale"];

// The worst that a card has to say, in words too: a failed test is seen at what it tests, and in every closed group.
function healthOf(card) {
  const found = (card.group ? idsIn(card.group) : [card.id]).map((id) => byId.get(id)).map(ownHealth).filter(Boolean);
  if (!found.length) return null;
  const kind = WORSE.find((one) => found.some((health) => health.kind === one)), same = found.filter((health) => health.kind === kind);
  return card.group ? { kind, text: `${count(same.length)} ${KIND_WORDS[kind]}` } : found[0];
}

function ownHealth(node) {
  const tests = node.tests.flatMap((test) => test.problems), all = [...node.problems, ...tests];
  const kind = WORSE.find((one) => all.some((problem) => problem.kind === one));
  if (!kind) return null;
  if (node.problems.some((problem) => problem.kind === kind)) return { kind, text: kind === "failed" ? "failed" : kind };
  const failed = tests.filter((problem) => problem.kind === kind).length;
  return { kind, text: `${plural(failed, "test")} ${KIND_WORDS[kind]}` };
}

// What is wrong with it, else how it fared in the last call.
function healthBadge(node) {
  const health = healthOf({ id: node.id });
  if (health) return badge(health.text, `status r-${health.kind}`);
  return node.result && status(node.result.status);
}

const since = (problem) => problem.since && el("span", { class: "since" }, `since ${moment(problem.since)} UTC (${span(problem.since, data.generated_at)})`);

// The node's own problems and those of its tests, the worst first.
function problemNotes(node) {
  const all = [...node.problems.map((problem) => ({ of: null, problem })), ...node.tests.flatMap((test) => test.problems.map((problem) => ({ of: test, problem })))];
  all.sort((a, b) => WORSE.indexOf(a.problem.kind) - WORSE.indexOf(b.problem.kind));
  return all.map(({ of, problem }) => el("p", { class: `note bad-${problem.kind}`, role: "note" },
    of ? [el("a", { href: link(of) }, `test ${testName(of)}`), ` ${problem.status}: `] : `${problem.status}: `, problem.message, " ", since(problem)));
}

function healthPanel() {
  const counts = Object.fromEntries(WORSE.map((kind) => [kind, new Set(data.problems.filter((problem) => problem.kind === kind).map((problem) => problem.unique_id)).size]));
  const checked = nodes.filter((node) => node.type === "source" && node.freshness?.status), fresh = checked.filter((node) => node.freshness.status === "pass");
  const call = [...data.calls].reverse().find((one) => one.measured);
  const tiles = [
    tile(counts.failed, counts.failed === 1 ? "node failed" : "nodes failed", counts.failed ? "bad" : "good"),
    tile(counts.stale, counts.stale === 1 ? "node is stale" : "nodes are stale", counts.stale ? "warn" : "good"),
    counts.warned > 0 && tile(counts.warned, counts.warned === 1 ? "warning" : "warnings", "warn"),
    checked.length > 0 && tile(`${count(fresh.length)} of ${count(checked.length)}`, "sources fresh", fresh.length === checked.length ? "good" : "warn"),
    call && tile(percent(call.read_bytes / call.rebuild_bytes), "of what rebuilding reads", "plain"),
  ];
  const isUnknown = !data.calls.length && !data.problems.length;
  const words = isUnknown ? "No run has left its results in the target folder yet." : data.problems.length ? null : "Nothing failed, and nothing is stale.";
  return section("Health", "health", el("div", { class: "tiles" }, tiles), words && el("p", { class: "lead well" }, words),
    data.problems.length > 0 && el("ul", { class: "problems" }, severalItems(data.problems, 8, problemItem)));
}

const tile = (value, words, tone) => el("div", { class: `tile t-${tone}` }, el("b", {}, typeof value === "number" ? count(value) : value), el("span", {}, words));

// As `several`, of a list: its rest is a list of its own.
function severalItems(items, limit, shown) {
  if (items.length <= limit + 1) return items.map(shown);
  return [...items.slice(0, limit).map(shown), el("li", { class: "more-item" }, el("details", { class: "more" }, el("summary", {}, `and ${count(items.length - limit)} more`), el("ul", { class: "problems" }, items.slice(limit).map(shown))))];
}

function problemItem(problem) {
  const node = byId.get(problem.unique_id), of = byId.get(node.attached);
  return el("li", {}, badge(problem.kind, `status r-${problem.kind}`), el("span", { class: "what" }, el("a", { href: link(node) }, of ? testName(node) : node.name),
    of && [" of ", el("a", { href: link(of) }, of.name)], " ", el("span", { class: "message" }, problem.message), " ", since(problem)));
}

// What the last run read, as a share of what rebuilding would have read, and how that was in the runs before.
function costPanel() {
  const calls = data.calls.filter((call) => call.measured);
  if (!calls.length) return null;
  const last = calls[calls.length - 1];
  const failed = data.calls.filter(hasFailed).length;
  return section("What runs cost", "cost",
    el("p", { class: "headline" }, "The last run read ", el("strong", {}, percent(last.read_bytes / last.rebuild_bytes)), " of what rebuilding would have read",
      el("span", { class: "faint" }, `: ${size(last.read_bytes)} instead of ${size(last.rebuild_bytes)}, for ${plural(last.measured, "model")}, on ${moment(last.at)} UTC.`)),
    calls.length > 1 && trend(calls),
    last.read_bytes > last.rebuild_bytes && el("p", { class: "hint" }, "Following a change reads files as they were and as they are: of small tables that is more than all of them once."),
    el("p", { class: "hint" }, `By the sizes of files in the tables' commits. Of the last ${plural(data.calls.length, "call")} ${failed || "none"} failed.`));
}

const hasFailed = (call) => ["error", "fail", "runtime error"].some((status) => call.statuses[status]);

// One bar for each run, oldest left: the share that it read. One that read far more than the others, as a first build
// does, is cut off, or nothing would be seen of the rest. A run with failures is marked below.
function trend(calls) {
  const shares = calls.map((call) => call.read_bytes / call.rebuild_bytes), ordered = [...shares].sort((a, b) => a - b);
  const usual = Math.max(8 * ordered[Math.floor(ordered.length / 2)], 0.005), most = Math.max(...shares.filter((share) => share <= usual), 0.001);
  const width = 100 / Math.max(calls.length, 12), isCut = shares.some((share) => share > most);
  const bars = calls.map((call, number) => {
    const x = number * width + width * 0.14, wide = width * 0.72, height = Math.max(Math.min(shares[number] / most, 1.1) * 31, 0.6);
    return svg("g", {}, svg("title", {}, `${moment(call.at)}: ${percent(shares[number])}, ${seconds(call.seconds || 0)}${hasFailed(call) ? ", with failures" : ""}`),
      svg("rect", { class: "behind", x: number * width, y: 0, width, height: 40 }), svg("rect", { class: "bar", x, width: wide, y: 36 - height, height }),
      shares[number] > most && svg("rect", { class: "cut", x, width: wide, y: 6, height: 1.6 }), hasFailed(call) && svg("rect", { class: "bar failed", x, width: wide, y: 37, height: 2.4 }));
  });
  const spoken = `Share read by each of the last ${calls.length} runs, oldest first: ${calls.map((call) => percent(call.read_bytes / call.rebuild_bytes)).join(", ")}`;
  return el("figure", { class: "trend" }, svg("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img", "aria-label": spoken }, bars),
    el("figcaption", {}, el("span", {}, moment(calls[0].at)), el("span", {}, `share read, up to ${percent(most)}${isCut ? "; higher bars are cut" : ""}${calls.some(hasFailed) ? "; red: with failures" : ""}`), el("span", {}, moment(calls[calls.length - 1].at))));
}
