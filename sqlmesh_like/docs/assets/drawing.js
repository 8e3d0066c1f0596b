// What Cytoscape draws of a placed scene: its elements, and their style in the colours of the page.
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif';

// A colour that a config names, as Cytoscape reads it; empty where it is none that a browser knows.
function plainColour(name) {
  if (!name || !CSS.supports("color", name) || /^currentcolor$/i.test(name)) return "";
  const pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = name;
  return pen.fillStyle.replaceAll(" ", "");
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function elementsOf(scene, placed, { trace, rowsOf, center }) {
  const at = (id) => { const { x, y, w, h } = placed.items.get(id); return { position: { x: x + w / 2, y: y + h / 2 }, w, h }; };
  const elements = [];
  for (const box of scene.boxes) {
    const { position, w, h } = at(box.id);
    elements.push({ group: "nodes", data: { id: box.id, w, h, label: box.group.label }, position, classes: "box" });
  }
  for (const card of scene.cards) elements.push(...cardElements(card, at(card.id), trace && rowsOf(card), card.id === center));
  for (const path of placed.paths) {
    elements.push({ group: "edges", data: { id: path.id, source: path.from, target: path.to, ...bends(path.points, path.direction), ...SIDES[path.direction], wide: Math.min(1.3 + Math.log2(path.count) * 0.7, 4) }, classes: trace ? "way faded" : "way" });
  }
  return elements;
}

// A card is a rectangle with the name; beside its dot stands what it is, and below that the columns of a trace.
function cardElements(card, { position, w, h }, rows, isCenter) {
  const node = card.group ? null : byId.get(card.id), left = position.x - w / 2, top = position.y - h / 2;
  const health = healthOf(card), kind = node ? node.type : "group", colourName = node ? strategyColour(node) : "soft";
  const classes = ["card", card.group && "group", isCenter && "center", health && `bad-${health.kind}`, rows && !rows.length && "faded"].filter(Boolean).join(" ");
  const elements = [
    { group: "nodes", data: { id: card.id, w, h, kind, own: plainColour(node?.color), label: card.group ? `+ ${card.group.label}` : node.name }, position, classes },
    { group: "nodes", data: { id: `${card.id}\u0000what`, dot: colourName, label: subtitle(card, health), of: card.id, room: w - 38 }, position: { x: left + 22, y: top + 33 }, classes: `what ${health ? `bad-${health.kind}` : ""} ${rows && !rows.length ? "faded" : ""}` },
  ];
  (rows || []).forEach((column, number) => elements.push({
    group: "nodes", data: { id: columnId(card.id, column), w: w - 2, label: column }, position: { x: position.x, y: top + CARD.h + 4 + number * CARD.row }, classes: "column",
  }));
  return elements;
}

const columnId = (id, column) => `${id}\u0000${column.toLowerCase()}`;
const STRATEGY_COLOURS = { no_op: "s0", row_based: "s1", aggregate_merge: "s2", partition_rescan: "s3", group_recompute: "s4", recompute_merge: "s5", full_refresh: "s5" };
const strategyColour = (node) => STRATEGY_COLOURS[strategyOf(node)] || node.type;
const roleOf = (node) => (node.plan ? strategyOf(node) : node.settings.materialized || node.exposure_type || node.type.replace("_", " "));

function subtitle(card, health) {
  if (card.group) return [health?.text, plural(card.group.size, "node")].filter(Boolean).join(" · ");
  return health ? health.text : roleOf(byId.get(card.id));
}

// Distances from the straight line between both ends, as Cytoscape asks for the control points of a curve.
function bends(points, direction) {
  const [start, end] = [points[0], points[points.length - 1]], controls = [];
  for (let number = 1; number < points.length; number += 2) {
    const [a, b] = [points[number - 1], points[number]];
    if (direction === "LR") controls.push({ x: (a.x + b.x) / 2, y: a.y }, { x: (a.x + b.x) / 2, y: b.y });
    else controls.push({ x: a.x, y: (a.y + b.y) / 2 }, { x: b.x, y: (a.y + b.y) / 2 });
    if (number + 1 < points.length) controls.push(b, points[number + 1]); // straight where it passes a layer
  }
  const dx = end.x - start.x, dy = end.y - start.y, length = Math.hypot(dx, dy) || 1;
  const along = controls.map(({ x, y }) => ((x - start.x) * dx + (y - start.y) * dy) / (length * length));
  const aside = controls.map(({ x, y }) => ((y - start.y) * dx - (x - start.x) * dy) / length);
  return { weights: along, distances: aside };
}

const SIDES = { LR: { out: "50% 0%", into: "-50% 0%" }, TB: { out: "0% 50%", into: "0% -50%" } };

function styleOf() {
  const [sheet, line, text, soft, accent, bad, warn, raised] = ["sheet", "line", "text", "soft", "accent", "bad", "warn", "raised"].map(colour);
  const kind = (node) => node.data("own") || (node.data("kind") === "group" ? soft : colour(node.data("kind")));
  const label = { "font-family": FONT, color: text, "text-halign": "right", "text-valign": "center", "text-wrap": "ellipsis", "min-zoomed-font-size": 4 };
  return [
    { selector: "node", style: { "z-index-compare": "manual", "overlay-opacity": 0 } },
    { selector: ".box", style: { shape: "round-rectangle", "corner-radius": 12, width: "data(w)", height: "data(h)", "background-color": raised, "background-opacity": 0.75, "border-width": 1.4, "border-color": line, "z-index": 0, events: "no" } },
    { selector: ".card", style: {
      ...label, shape: "round-rectangle", "corner-radius": 8, width: "data(w)", height: "data(h)", "border-width": 1.2, "border-color": line, "z-index": 3,
      "background-color": sheet, "background-fill": "linear-gradient", "background-gradient-direction": "to-right", "background-gradient-stop-positions": (node) => `0 ${500 / node.data("w")} ${500 / node.data("w")} 100`, "background-gradient-stop-colors": (node) => `${kind(node)} ${kind(node)} ${sheet} ${sheet}`,
      label: "data(label)", "font-size": 13, "font-weight": 600, "text-margin-x": (node) => 18 - node.data("w"), "text-margin-y": (node) => 16 - node.data("h") / 2, "text-max-width": (node) => node.data("w") - 28,
    } },
    { selector: ".group", style: { "border-style": "double", "border-width": 4 } },
    { selector: ".center", style: { "border-width": 2.4, "border-color": kind } },
    { selector: ".bad-failed", style: { "border-color": bad, "border-width": 2.2 } },
    { selector: ".bad-warned, .bad-stale", style: { "border-color": warn } },
    { selector: ".what", style: { ...label, shape: "ellipse", width: 7, height: 7, "background-color": (node) => colour(node.data("dot")), "border-width": 0, label: "data(label)", "font-size": 11, color: soft, "text-margin-x": 6, "text-max-width": (node) => node.data("room"), "z-index": 4, events: "no" } },
    { selector: ".what.bad-failed", style: { color: bad, "background-color": bad, "font-weight": 600 } },
    { selector: ".what.bad-warned, .what.bad-stale", style: { color: warn, "background-color": warn } },
    { selector: ".column", style: { ...label, shape: "rectangle", width: "data(w)", height: 16, "background-opacity": 0, label: "data(label)", "font-size": 11.5, color: accent, "text-margin-x": (node) => 16 - node.data("w"), "text-max-width": (node) => node.data("w") - 28, "z-index": 4, events: "no" } },
    { selector: ".way", style: {
      "curve-style": "unbundled-bezier", "edge-distances": "endpoints", "control-point-weights": "data(weights)", "control-point-distances": "data(distances)", "source-endpoint": "data(out)", "target-endpoint": "data(into)",
      width: "data(wide)", "line-color": soft, "line-opacity": 0.5, "target-arrow-shape": "triangle", "target-arrow-color": soft, "arrow-scale": 0.8, "z-index-compare": "manual", "z-index": 1, events: "no",
    } },
    { selector: ".trace", style: { "curve-style": "unbundled-bezier", "edge-distances": "endpoints", "control-point-weights": "data(weights)", "control-point-distances": "data(distances)", "source-endpoint": "50% 0%", "target-endpoint": "-50% 0%", width: 1.8, "line-color": (edge) => colour(edge.data("ink")), "z-index-compare": "manual", "z-index": 5, events: "no" } },
    { selector: "edge.on", style: { "line-color": accent, "target-arrow-color": accent, "line-opacity": 1, "z-index": 2 } },
    { selector: ".picked", style: { "border-width": 2.4, "border-color": accent } },
    { selector: ".faded", style: { opacity: 0.25 } },
    { selector: "edge.faded", style: { opacity: 0.12 } },
  ];
}
