// The graph of tables: folders as groups that open and close, drawn by Cytoscape. Over the drawing lie links that nobody
// sees, one for each card, where keys and screen readers find them.
const READABLE = 0.6, PAD = 20;
// Cards up to which a graph is laid out at first sight, and ids above which folders are worth it.
const MOST_AT_FIRST = 160, MOST_TRIES = 12, UNGROUPED = 30;
const openGroups = new Map(); // as they were left, by what the graph is of
let drawings = [];

// `trace`: what `traced` found; the columns on it stand on their cards, the rest fades. `center`: id of the page's node.
// `name`: under it open groups are remembered. `isWhole`: the graph fills the page.
function graph(ids, { center = null, trace = null, isWhole = false, name = null, label }) {
  if (!canDraw) return layersOf(ids, label);
  const frame = el("div", { class: "viewer" }), stage = el("div", { class: "stage", "aria-hidden": "true" });
  const spots = el("div", { class: "spots" }), about = el("p", { class: "about" });
  frame.append(stage, el("div", { class: "over", role: "group", "aria-label": label }, spots), about);
  const rowsOf = (card) => trace?.columns.get(byId.get(card.id)?.index) || [];
  const cardWidth = widthOf(ids, trace);
  const sizeOf = (card) => ({ w: card.group ? CARD.group : cardWidth, h: CARD.h + rowsOf(card).length * CARD.row });
  const flat = { key: "", label: "", groups: [], ids, size: ids.length };
  const view = { tree: flat, rowsOf, sizeOf, center, trace, isWhole, name, frame, stage, spots, about, cy: null, scene: null, placed: null };
  const width = Math.max(main.clientWidth - (innerWidth <= 860 ? 60 : 150), 200), most = isWhole ? innerHeight - 230 : innerWidth <= 860 ? 420 : 480;
  firstSight(view, isWhole ? main.clientWidth - (innerWidth <= 860 ? 32 : 44) : width, most);
  if (!isWhole) frame.style.height = `${Math.round(Math.min(Math.max(view.placed.height * Math.max(fitting(view.placed, width, most), READABLE) + 2 * PAD + TOOLS, 170), most))}px`;
  new ResizeObserver(() => { if (stage.clientWidth && !view.cy) draw(view); }).observe(stage);
  return frame;
}

// All cards of a graph are as wide as the longest of their texts, within reason.
function widthOf(ids, trace) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `600 13px ${FONT}`;
  const texts = ids.flatMap((id) => [byId.get(id).name, ...(trace?.columns.get(byId.get(id).index) || [])]);
  return Math.ceil(Math.min(Math.max(CARD.least, ...texts.map((text) => pen.measureText(text).width + 30)), CARD.most));
}

// A few nodes are shown as they are, if they can be read so; of others folders are opened level by level for as long as
// the whole stays readable.
function firstSight(view, width, height) {
  const { ids } = view.tree;
  let best = ids.length <= UNGROUPED || view.trace ? opened(view, [], width, height) : null;
  if (view.trace || best?.zoom >= READABLE) { Object.assign(view, best); return; }
  view.tree = groupTree(ids);
  const kept = openGroups.get(view.name), groups = groupsIn(view.tree);
  best = kept ? opened(view, kept, width, height) : null;
  for (let depth = 1; depth < 8 && !kept; depth += 1) {
    const keys = openTo(view.tree, depth);
    if (best && sceneOf(view.tree, new Set(keys)).cards.length > MOST_AT_FIRST) break;
    const found = opened(view, keys, width, height);
    if (best && found.zoom < READABLE) break;
    best = found;
    if (keys.length === groups.length) break;
  }
  if (!kept) best = openedFurther(view, best, width, height);
  Object.assign(view, best);
  const missing = view.center ? groupsAround(view.tree, view.center).filter((key) => !view.open.has(key)) : [];
  if (missing.length) arrange(view, [...view.open, ...missing]);
}

// Of the outermost groups, where they could not all be opened, those that leave it readable, the smallest first.
function openedFurther(view, best, width, height) {
  const seen = (group) => group.ids.length + group.groups.length;
  const closed = best.scene.cards.filter((card) => card.group && card.box === null).sort((a, b) => seen(a.group) - seen(b.group));
  for (const { group } of closed.slice(0, MOST_TRIES)) {
    if (best.scene.cards.length + seen(group) > MOST_AT_FIRST) break;
    const found = opened(view, [...best.open, group.key], width, height);
    if (found.zoom < READABLE) break;
    best = found;
  }
  return best;
}

// The scene with these groups open, placed from left to right as people read it, or downwards where that is much smaller.
// Downwards goes only what is in no box: there edges would seem to lead from each card of a column to the next.
function opened(view, keys, width, height) {
  const open = new Set(keys), scene = sceneOf(view.tree, open);
  const directions = scene.boxes.length || view.trace || scene.cards.length > MOST_AT_FIRST ? ["LR"] : ["LR", "TB"];
  const [wide, high] = directions.map((direction) => {
    const placed = layout(scene, direction, view.sizeOf);
    return { open, scene, placed, zoom: fitting(placed, width, height) };
  });
  return high && high.zoom > 1.3 * wide.zoom ? high : wide;
}

function arrange(view, keys) {
  const { width, height } = view.stage.getBoundingClientRect();
  Object.assign(view, opened(view, keys, width || 800, height || 480));
  if (view.name) openGroups.set(view.name, keys);
}

// The buttons cover no card of a picture that fits.
const TOOLS = 40;
const fitting = (placed, width, height) => Math.min((width - 2 * PAD) / Math.max(placed.width, 1), (height - 2 * PAD - TOOLS) / Math.max(placed.height, 1), 1);
const centred = (placed, zoom, cy) => ({ x: (cy.width() - placed.width * zoom) / 2, y: Math.max((cy.height() - placed.height * zoom) / 2 - TOOLS / 2, Math.min(PAD, (cy.height() - placed.height * zoom) / 2)) });

function draw(view) {
  // Cytoscape would add a style of its own, which the page's policy forbids; one of this id tells it that it is there.
  if (!document.getElementById("__________cytoscape_stylesheet")) document.head.append(el("meta", { id: "__________cytoscape_stylesheet" }));
  view.cy = cytoscape({ container: view.stage, layout: { name: "preset" }, minZoom: 0.04, maxZoom: 2.5, autoungrabify: true, autounselectify: true, boxSelectionEnabled: false, hideEdgesOnViewport: false });
  view.map = minimap(view.cy, view.placed);
  view.frame.append(toolbar(view));
  if (view.isWhole) view.frame.append(view.map.canvas);
  populate(view);
  startView(view);
  watchGestures(view);
  moveByKeys(view);
  drawings.push(view);
  view.cy.on("resize", () => { if (!view.isMoved) startView(view); });
  for (const way of ["pan", "zoom"]) view.cy.on(way, () => alignSpots(view));
  view.cy.one("dragpan scrollzoom pinchzoom", () => { view.isMoved = true; });
  alignSpots(view);
  if (view.center && view.isWhole) highlight(view, view.center);
}

function populate(view) {
  const { cy, scene, placed } = view;
  placed.boxes = new Set(scene.boxes.map((box) => box.id));
  placed.failed = new Set(scene.cards.filter((card) => healthOf(card)?.kind === "failed").map((card) => card.id));
  cy.batch(() => {
    cy.elements().remove();
    cy.style(styleOf());
    cy.add(elementsOf(scene, placed, view));
    if (view.trace) cy.add(traceEdges(view));
  });
  view.spots.replaceChildren(...readingOrder(view).map((one) => spot(view, one)));
  const first = view.spots.querySelector('[aria-current="page"]') || view.spots.firstElementChild;
  if (first) first.tabIndex = 0;
  view.map.measure(placed);
}

function traceEdges({ trace, rowsOf, placed }) {
  const rowAt = (id, column, side) => {
    const place = placed.items.get(id), row = rowsOf({ id }).findIndex((name) => name.toLowerCase() === column.toLowerCase());
    return place && { x: place.x + (side === "right" ? place.w : 0), y: place.y + CARD.h + 4 + row * CARD.row };
  };
  return trace.edges.flatMap((edge, number) => {
    const [from, to] = [nodes[edge.from].id, nodes[edge.to].id];
    const ends = [rowAt(from, edge.column, "right"), rowAt(to, edge.reader, "left")];
    const data = { id: `trace\u0000${number}`, source: columnId(from, edge.column), target: columnId(to, edge.reader), ink: HOW_COLOURS[edge.how] };
    return ends.every(Boolean) ? [{ group: "edges", classes: `trace h-${edge.how}`, data: { ...data, ...bends(ends, "LR") } }] : [];
  });
}
const HOW_COLOURS = { copied: "s2", computed: "s3", aggregated: "s4" };

// The whole if it can be read so, else its beginning, or the page's own node.
function startView(view) {
  const { cy, placed } = view, width = cy.width(), height = cy.height();
  const whole = fitting(placed, width, height), zoom = Math.max(whole, READABLE), here = view.center && placed.items.get(view.center);
  const { x, y } = centred(placed, zoom, cy);
  const isLong = placed.width * zoom > width - PAD, isHigh = placed.height * zoom > height - PAD;
  const at = here ? { x: width / 2 - (here.x + here.w / 2) * zoom, y: height / 2 - (here.y + here.h / 2) * zoom }
    : { x: placed.direction === "LR" ? PAD : x, y: placed.direction === "LR" ? y : PAD };
  cy.viewport({ zoom, pan: { x: isLong ? at.x : x, y: isHigh ? at.y : y } });
}

function fitWhole(view) {
  const { cy, placed } = view, zoom = fitting(placed, cy.width(), cy.height());
  cy.viewport({ zoom, pan: centred(placed, zoom, cy) });
}

function toolbar(view) {
  const { cy } = view;
  const zoom = (factor) => { view.isMoved = true; cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }); };
  const button = (label, sign, action) => el("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: action }, sign);
  const groups = groupsIn(view.tree);
  return el("div", { class: "tools" },
    groups.length > 0 && [button("Open all groups", "⊞", () => regroup(view, groups.map((group) => group.key))), button("Close all groups", "⊟", () => regroup(view, []))],
    button("Zoom in", "+", () => zoom(1.3)), button("Zoom out", "−", () => zoom(1 / 1.3)), button("Fit", "⤢", () => fitWhole(view)));
}

// Other groups are open now. What was pressed stays where it is on the screen.
function regroup(view, open, pressed = null) {
  const { cy } = view, before = pressed && view.placed.items.get(pressed), from = before && { x: before.x * cy.zoom() + cy.pan().x, y: before.y * cy.zoom() + cy.pan().y };
  arrange(view, open);
  populate(view);
  const after = pressed && view.placed.items.get(pressed);
  if (!after) { view.isMoved = false; if (open.length) startView(view); else fitWhole(view); }
  else {
    view.isMoved = true;
    const left = Math.min(from.x, Math.max(PAD, cy.width() - after.w * cy.zoom() - PAD)), top = Math.min(Math.max(from.y, PAD), Math.max(PAD, cy.height() - after.h * cy.zoom() - PAD));
    cy.pan({ x: left - after.x * cy.zoom(), y: top - after.y * cy.zoom() });
  }
  alignSpots(view);
}

function toggle(view, key) {
  const open = new Set(view.open);
  if (!open.delete(key)) open.add(key);
  else for (const other of open) if (other.startsWith(`${key}/`)) open.delete(other);
  const hadFocus = view.spots.contains(document.activeElement);
  regroup(view, [...open], key);
  if (hadFocus) view.spots.querySelector(`[data-id="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// Pages that are gone leave no drawing behind; the colours of the others follow the page.
function dropDrawings() {
  for (const { cy } of drawings) cy.destroy();
  drawings = [];
}
function recolour() {
  for (const view of drawings) { view.cy.style(styleOf()); view.map.measure(view.placed); }
}

// Where there is nothing to draw with: layers, each of what reads the ones before.
function layersOf(ids, label) {
  const shown = new Set(ids), depth = new Map();
  const depthOf = (id) => {
    if (!depth.has(id)) depth.set(id, 1 + Math.max(-1, ...byId.get(id).parents.filter((parent) => shown.has(parent)).map(depthOf)));
    return depth.get(id);
  };
  const layers = [];
  for (const id of ids) (layers[depthOf(id)] ||= []).push(byId.get(id));
  return el("ol", { class: "layers", "aria-label": label }, layers.map((layer) => el("li", {}, several(layer, 30, (node) => [el("a", { href: link(node) }, node.name), " "]))));
}
