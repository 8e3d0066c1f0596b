// Places of cards, boxes and edges. dagre finds them: what is in a box is laid out by itself, then the box is one node of
// the layout around it. So a box is no larger than it must be, and a thousand cards in boxes take no longer than their sum.
const CARD = { least: 150, most: 236, h: 46, row: 20, group: 166 };
const GAP = { layer: 60, card: 14 };
const BOX = { pad: 14, head: 26 };
// Beyond so many cards in one place the exact ranking takes seconds, and the rough one looks the same.
const EXACT = 200;

// Corners of the result are the upper left ones, ids those of the scene. `direction` is that of the outermost: within
// boxes inputs are always left, so that what does not depend on each other stands in a column.
function layout(scene, direction, sizeOf) {
  const inside = new Map([[null, []]]), parent = new Map();
  for (const box of scene.boxes) inside.set(box.id, []);
  for (const one of [...scene.boxes, ...scene.cards]) { inside.get(one.box).push(one); parent.set(one.id, one.box); }
  const levels = edgesByLevel(scene.edges, parent), items = new Map(), lanes = new Map();
  const place = (box) => {
    const sizes = new Map(inside.get(box).map((one) => [one.id, inside.has(one.id) ? boxed(place(one.id)) : sizeOf(one)]));
    return dagreLayout(sizes, levels.get(box) || new Map(), box === null ? direction : "LR", items, lanes);
  };
  const whole = place(null);
  const shift = (box, dx, dy) => {
    for (const { id } of inside.get(box)) {
      const item = items.get(id);
      item.x += dx;
      item.y += dy;
      if (inside.has(id)) shift(id, item.x + BOX.pad, item.y + BOX.pad + BOX.head);
    }
  };
  shift(null, 0, 0);
  return { items, paths: pathsOf(scene.edges, items, parent, levels, lanes, direction), direction, width: whole.w, height: whole.h };
}

const boxed = ({ w, h }) => ({ w: w + 2 * BOX.pad, h: h + 2 * BOX.pad + BOX.head });

// Places within one box go to `items`, ways of its edges to `lanes`, both from the box's own corner.
function dagreLayout(sizes, edges, direction, items, lanes) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: direction, ranksep: GAP.layer, nodesep: GAP.card, edgesep: 8, ranker: sizes.size > EXACT ? "tight-tree" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const [id, { w, h }] of sizes) graph.setNode(id, { width: w, height: h });
  for (const { from, to, count } of edges.values()) graph.setEdge(from, to, { weight: Math.min(count, 4) });
  dagre.layout(graph);
  for (const id of sizes.keys()) {
    const { x, y, width, height } = graph.node(id);
    items.set(id, { x: x - width / 2, y: y - height / 2, w: width, h: height });
  }
  for (const [key, { from, to }] of edges) lanes.set(key, graph.edge(from, to).points);
  return { w: graph.graph().width, h: graph.graph().height };
}

// Every edge belongs to the innermost box that both of its ends are in, between what holds them there.
function edgesByLevel(edges, parent) {
  const levels = new Map();
  for (const edge of edges) {
    const { box, from, to } = meeting(edge, parent), key = `${from}\u0000${to}`;
    if (!levels.has(box)) levels.set(box, new Map());
    const known = levels.get(box).get(key);
    if (known) known.count += edge.count;
    else levels.get(box).set(key, { from, to, count: edge.count });
  }
  return levels;
}

function meeting({ from, to }, parent) {
  const chain = (id) => { const ids = [id]; while (parent.get(ids[0]) !== null) ids.unshift(parent.get(ids[0])); return ids; };
  const [a, b] = [chain(from), chain(to)];
  let depth = 0;
  while (a[depth] === b[depth]) depth += 1;
  return { box: depth ? a[depth - 1] : null, from: a[depth], to: b[depth] };
}

function pathsOf(edges, items, parent, levels, lanes, direction) {
  const layers = new Map();
  return edges.map((edge) => {
    const { box, from, to } = meeting(edge, parent), way = box === null ? direction : "LR", corner = box === null ? { x: 0, y: 0 } : items.get(box);
    const dx = box === null ? 0 : corner.x + BOX.pad, dy = box === null ? 0 : corner.y + BOX.pad + BOX.head;
    if (!layers.has(box)) layers.set(box, layersAlong([...parent].filter(([, of]) => of === box).map(([id]) => items.get(id)), way));
    const points = lanes.get(`${from}\u0000${to}`).map(({ x, y }) => ({ x: x + dx, y: y + dy }));
    return { ...edge, direction: way, points: waypoints(points, items.get(edge.from), items.get(edge.to), layers.get(box), way) };
  });
}

// The stretches of the way that cards fill: [from, to], in order.
function layersAlong(items, direction) {
  const stretches = items.map((item) => (direction === "LR" ? [item.x, item.x + item.w] : [item.y, item.y + item.h])).sort((a, b) => a[0] - b[0]);
  const layers = [];
  for (const [from, to] of stretches) {
    const last = layers[layers.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else layers.push([from, to]);
  }
  return layers;
}

// From the middle of a side to the middle of the other's. Where an edge passes a layer it goes straight, at the place that
// dagre keeps free for it; between layers it bends.
function waypoints(points, from, to, layers, direction) {
  const isWide = direction === "LR", [along, aside] = isWide ? ["x", "y"] : ["y", "x"];
  const start = isWide ? { x: from.x + from.w, y: from.y + from.h / 2 } : { x: from.x + from.w / 2, y: from.y + from.h };
  const end = isWide ? { x: to.x, y: to.y + to.h / 2 } : { x: to.x + to.w / 2, y: to.y };
  const passed = points.slice(1, -1).flatMap((point) => {
    const layer = layers.find(([first, last]) => first <= point[along] && point[along] <= last);
    const isBetween = layer && layer[0] > start[along] && layer[1] < end[along];
    return isBetween ? layer.map((place) => ({ [along]: place, [aside]: point[aside] })) : [];
  });
  return [start, ...passed, end];
}
