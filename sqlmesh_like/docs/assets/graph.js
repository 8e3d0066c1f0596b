// The graph of tables as SVG: cards with a link each, edges, columns of a trace. Drag to move, wheel to zoom, arrow keys
// go from card to card.
const CARD = { w: 208, h: 46, row: 20 };

// `trace`: what `traced` found; the columns on it stand on their cards, the rest fades. `center`: id of the page's node.
function graph(ids, { center = null, trace = null, height = null, label }) {
  const wanted = new Set(ids);
  const edges = ids.flatMap((id) => byId.get(id).children.filter((child) => wanted.has(child)).map((child) => [id, child]));
  const rowsOf = (id) => trace?.columns.get(byId.get(id).index) || [];
  const placed = layout(ids, edges, (id) => ({ w: CARD.w, h: CARD.h + rowsOf(id).length * CARD.row }));
  const scene = svg("g", { class: "scene" });
  const picture = svg("svg", { class: "graph", role: "group", "aria-label": label }, arrows(), scene);
  const cards = new Map();
  const lines = placed.paths.map((path) => ({ ...path, line: svg("path", { class: "edge", d: curve(path.chain), "marker-end": "url(#arrow)" }) }));
  scene.append(svg("g", { "aria-hidden": "true" }, lines.map((path) => path.line)));
  for (const id of readingOrder(placed, ids)) {
    const card = cardOf(byId.get(id), placed.items.get(id), rowsOf(id), id === center);
    if (trace && !rowsOf(id).length) card.classList.add("faded");
    cards.set(id, card);
    scene.append(card);
  }
  if (trace) {
    for (const { line } of lines) line.classList.add("faded");
    scene.append(svg("g", { "aria-hidden": "true" }, trace.edges.map((edge) => columnEdge(edge, placed, rowsOf))));
  } else highlightWays(cards, lines);
  moveByKeys(picture, cards, placed);
  return viewer(picture, scene, placed, { center, height });
}

const arrows = () => svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 .5 7 4 0 7.5z" })));

const readingOrder = (placed, ids) =>
  [...ids].sort((a, b) => placed.items.get(a).x - placed.items.get(b).x || placed.items.get(a).y - placed.items.get(b).y);

function curve(chain) {
  const points = chain.flatMap((item, number) => {
    const y = item.isPass ? item.y + item.h / 2 : item.y + CARD.h / 2;
    if (item.isPass) return [[item.x, y], [item.x + CARD.w, y]];
    return [[number === 0 ? item.x + item.w : item.x - 2, y]];
  });
  return points.map(([x, y], number) => (number ? bend(points[number - 1], [x, y]) : `M${x} ${y}`)).join("");
}

const bend = ([fromX, fromY], [x, y]) => {
  const middle = (fromX + x) / 2;
  return `C${middle} ${fromY} ${middle} ${y} ${x} ${y}`;
};

function cardOf(node, place, columns, isCenter) {
  const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
  const what = node.plan ? strategyOf(node) : node.settings.materialized || node.exposure_type || node.type;
  // As it is seen, then what is not: who speaks to the page says what stands on a card.
  const words = `${[node.name, what, ...columns].join(" ")}, ${node.type}, reads ${node.parents.length}, read by ${node.children.filter((id) => IN_GRAPH.has(byId.get(id).type)).length}`;
  const card = svg("a", { class: `card k-${node.type}${isCenter ? " center" : ""}`, href: link(node), "data-id": node.id, "aria-label": words, "aria-current": isCenter ? "page" : null, transform: `translate(${place.x} ${place.y})` },
    svg("rect", { class: "back", width: place.w, height: place.h, rx: 8 }),
    svg("path", { class: "stripe", d: `M8 0H5a5 5 0 0 0-5 5v${place.h - 10}a5 5 0 0 0 5 5h3z` }),
    svg("text", { class: "name", x: 18, y: 20 }, short(node.name, 25)), " ",
    svg("circle", { class: `dot s-${what}`, cx: 22, cy: 33.5, r: 3.5 }),
    svg("text", { class: "what", x: 31, y: 37 }, short(`${what}`, 27)),
    columns.map((column, number) => [" ", svg("text", { class: "column", x: 18, y: CARD.h + 12 + number * CARD.row }, short(column, 27))]));
  if (node.color) card.style.setProperty("--k", node.color);
  return card;
}

function columnEdge(edge, placed, rowsOf) {
  const at = (node, column) => {
    const id = nodes[node].id, place = placed.items.get(id);
    if (!place) return null;
    const row = rowsOf(id).findIndex((name) => name.toLowerCase() === column.toLowerCase());
    return { x: place.x, y: place.y + CARD.h + 8 + row * CARD.row };
  };
  const from = at(edge.from, edge.column), to = at(edge.to, edge.reader);
  if (!from || !to) return null;
  return svg("path", { class: `trace h-${edge.how}`, d: `M${from.x + CARD.w} ${from.y}${bend([from.x + CARD.w, from.y], [to.x, to.y])}` },
    svg("title", {}, edge.how));
}

// A card that is pointed at or has the focus shows all that it reads and all that reads it.
function highlightWays(cards, lines) {
  const reach = (id, next, found = new Set([id])) => {
    for (const other of next(byId.get(id))) if (cards.has(other) && !found.has(other)) reach(other, next, found.add(other));
    return found;
  };
  const show = (id) => {
    const up = reach(id, (node) => node.parents), down = reach(id, (node) => node.children);
    for (const [other, card] of cards) card.classList.toggle("faded", !up.has(other) && !down.has(other));
    for (const { from, to, line } of lines) {
      const isOn = (up.has(from) && up.has(to)) || (down.has(from) && down.has(to));
      line.classList.toggle("on", isOn);
      line.classList.toggle("faded", !isOn);
    }
  };
  const clear = () => {
    for (const card of cards.values()) card.classList.remove("faded");
    for (const { line } of lines) line.classList.remove("on", "faded");
  };
  for (const [id, card] of cards) {
    for (const event of ["mouseenter", "focus"]) card.addEventListener(event, () => show(id));
    for (const event of ["mouseleave", "blur"]) card.addEventListener(event, clear);
  }
}

function moveByKeys(picture, cards, placed) {
  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  picture.addEventListener("keydown", (event) => {
    const step = STEPS[event.key], id = event.target.closest?.("[data-id]")?.dataset.id;
    if (!step || !id) return;
    event.preventDefault();
    const here = placed.items.get(id);
    let best = null, least = Infinity;
    for (const other of cards.keys()) {
      const there = placed.items.get(other), dx = there.x - here.x, dy = there.y - here.y;
      const along = dx * step[0] + dy * step[1], aside = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
      if (along > 0 && along + aside * 2 < least) [best, least] = [other, along + aside * 2];
    }
    if (best) cards.get(best).focus();
  });
}
