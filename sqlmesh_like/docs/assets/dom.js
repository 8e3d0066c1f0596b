// The data, and the few helpers that make elements of it. Text enters the page as text; only descriptions, which were
// made safe when the page was written, enter as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const nodes = data.nodes;
const byId = new Map(nodes.map((node) => [node.id, node]));
const rules = new Map(data.rules.map((rule) => [rule.id, rule]));
nodes.forEach((node, index) => { node.index = index; node.children = []; node.tests = []; node.problems = []; });
for (const node of nodes) {
  for (const parent of node.parents) byId.get(parent)?.children.push(node.id);
  // A test of several tables hangs on each of them.
  const tested = node.attached ? [node.attached] : node.type === "test" ? node.parents : [];
  for (const id of tested) byId.get(id)?.tests.push(node);
}
for (const problem of data.problems) byId.get(problem.unique_id).problems.push(problem);
// A page that was written without the libraries lists its graph and searches by parts of words.
const canDraw = typeof cytoscape === "function" && typeof dagre === "object";
const IN_GRAPH = new Set(["source", "seed", "model", "snapshot", "exposure", "analysis"]);
const TABLES = new Set(["source", "seed", "model", "snapshot"]);
const LADDER = ["row_based", "aggregate_merge", "partition_rescan", "group_recompute", "recompute_merge", "full_refresh"];
const KINDS = {
  source: "Sources", seed: "Seeds", snapshot: "Snapshots", model: "Models", analysis: "Analyses",
  exposure: "Exposures", test: "Tests", unit_test: "Unit tests", macro: "Macros",
};

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function prose(html, className = "prose") {
  const holder = el("div", { class: className });
  holder.innerHTML = html;
  return holder;
}

const link = (node) => `#/node/${encodeURIComponent(node.id)}`;
const count = (number) => Number(number).toLocaleString("en-US");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const strategyOf = (node) => node.plan?.strategy || null;

function size(bytes) {
  let amount = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (amount < 1000) return `${unit === "B" ? amount : amount.toFixed(1)} ${unit}`;
    amount /= 1000;
  }
  return `${amount.toFixed(1)} TB`;
}

function seconds(value) {
  if (value < 60) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

// ISO 8601 → "2024-05-01 12:30:00", in UTC as everything here.
const moment = (iso) => (iso ? String(iso).replace("T", " ").replace(/(\.\d+)?Z?$/, "") : "");

// A frontier (`requested_completed`) → the time of its completion; anything else is shown as it is.
function instant(frontier) {
  const digits = /^\d{14,17}_(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)\d*$/.exec(frontier || "");
  return digits ? `${digits[1]}-${digits[2]}-${digits[3]} ${digits[4]}:${digits[5]}:${digits[6]}` : String(frontier || "");
}

// "3 days", of two moments of ISO 8601.
function span(from, to) {
  const minutes = Math.max(0, (Date.parse(to) - Date.parse(from)) / 60000);
  if (minutes < 2) return "a moment";
  if (minutes < 120) return `${Math.floor(minutes)} minutes`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} hours` : `${Math.floor(minutes / 1440)} days`;
}

// Two digits of a share, and no more than it has: 1.2%, 34%, under 0.1%.
function percent(share) {
  const value = share * 100;
  if (value > 0 && value < 0.1) return "under 0.1%";
  return `${value < 10 ? String(Math.round(value * 10) / 10) : count(Math.round(value))}%`;
}

// The first of many, and the rest behind "and 188 more".
function several(items, limit, shown) {
  if (items.length <= limit + 1) return items.map(shown);
  return [...items.slice(0, limit).map(shown), el("details", { class: "more" },
    el("summary", {}, `and ${count(items.length - limit)} more`), el("span", { class: "rest" }, items.slice(limit).map(shown)))];
}

const badge = (text, className = "") => el("span", { class: `badge ${className}` }, text);
const strategyBadge = (strategy) => strategy && badge(strategy, `strategy s-${strategy}`);
const kindBadge = (node) => badge(node.type.replace("_", " "), `kind k-${node.type}`);
const ruleLink = (id) => el("a", { class: "rule", href: `#/rules/${id}`, title: rules.get(id)?.meaning }, id);
const status = (word) => badge(word, `status r-${word.replace(/\W/g, "-")}`);
