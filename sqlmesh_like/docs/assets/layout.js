// Places of nodes, inputs left and readers right: the method of Sugiyama, Tagawa and Toda (1981) – ranks by the longest
// path, invisible nodes where an edge passes a rank, fewer crossings by barycentres, then heights near the neighbours'.
const GAP_X = 64, GAP_Y = 18, PASS_HEIGHT = 6;

function layout(ids, edges, sizeOf) {
  const inside = new Set(ids);
  const items = new Map(ids.map((id) => [id, { id, ...sizeOf(id), up: [], down: [] }]));
  const kept = edges.filter(([from, to]) => inside.has(from) && inside.has(to));
  const ranks = ranked(ids, kept);
  const passes = kept.map(([from, to]) => withPasses(items, ranks, from, to));
  const layers = [];
  for (const item of items.values()) (layers[ranks.get(item.id)] ||= []).push(item);
  for (let sweep = 0; sweep < 10; sweep += 1) reorder(layers, sweep % 2 === 0);
  setHeights(layers);
  let x = 0;
  for (const layer of layers) {
    const width = Math.max(...layer.map((item) => item.w));
    for (const item of layer) item.x = x;
    x += width + GAP_X;
  }
  const top = Math.min(...[...items.values()].map((item) => item.y), Infinity);
  for (const item of items.values()) item.y -= top;
  const bottom = Math.max(...[...items.values()].map((item) => item.y + item.h), 0);
  return { items, paths: passes, width: Math.max(x - GAP_X, 0), height: bottom };
}

// Ranks by the longest path; what nobody reads from the left moves next to its first reader.
function ranked(ids, edges) {
  const above = new Map(ids.map((id) => [id, []])), below = new Map(ids.map((id) => [id, []]));
  for (const [from, to] of edges) { above.get(to).push(from); below.get(from).push(to); }
  const ranks = new Map(), waiting = new Map(ids.map((id) => [id, above.get(id).length]));
  const ready = ids.filter((id) => !waiting.get(id));
  for (const id of ready) {
    ranks.set(id, Math.max(-1, ...above.get(id).map((parent) => ranks.get(parent))) + 1);
    for (const child of below.get(id)) {
      waiting.set(child, waiting.get(child) - 1);
      if (!waiting.get(child)) ready.push(child);
    }
  }
  for (const id of ids) {
    if (!above.get(id).length && below.get(id).length) {
      ranks.set(id, Math.min(...below.get(id).map((child) => ranks.get(child))) - 1);
    }
  }
  return ranks;
}

function withPasses(items, ranks, from, to) {
  const chain = [items.get(from)];
  for (let rank = ranks.get(from) + 1; rank < ranks.get(to); rank += 1) {
    const id = `${from}\u0000${to}\u0000${rank}`;
    const pass = { id, w: 0, h: PASS_HEIGHT, up: [], down: [], isPass: true };
    ranks.set(id, rank);
    items.set(id, pass);
    chain.push(pass);
  }
  chain.push(items.get(to));
  for (let number = 1; number < chain.length; number += 1) {
    chain[number - 1].down.push(chain[number]);
    chain[number].up.push(chain[number - 1]);
  }
  return { from, to, chain };
}

function reorder(layers, rightwards) {
  for (const layer of layers) layer.forEach((item, place) => { item.place = place; });
  const order = rightwards ? layers : [...layers].reverse();
  for (const layer of order) {
    for (const item of layer) {
      const near = rightwards ? item.up : item.down;
      item.weight = near.length ? near.reduce((sum, other) => sum + other.place, 0) / near.length : item.place;
    }
    layer.sort((a, b) => a.weight - b.weight || a.place - b.place);
    layer.forEach((item, place) => { item.place = place; });
  }
}

function setHeights(layers) {
  for (const layer of layers) {
    let y = 0;
    for (const item of layer) { item.y = y; y += item.h + GAP_Y; }
  }
  for (let round = 0; round < 12; round += 1) {
    for (const layer of round % 2 ? [...layers].reverse() : layers) settle(layer);
  }
}

// Each item goes where its neighbours are, as near as its own order allows: blocks that collide share their mean.
function settle(layer) {
  const blocks = [];
  for (const item of layer) {
    const near = [...item.up, ...item.down];
    const wanted = near.length
      ? near.reduce((sum, other) => sum + other.y + other.h / 2, 0) / near.length - item.h / 2
      : item.y;
    let block = { items: [item], height: item.h + GAP_Y, sum: wanted, y: wanted };
    while (blocks.length && blocks[blocks.length - 1].y + blocks[blocks.length - 1].height > block.y) {
      const before = blocks.pop();
      const sum = before.sum + block.sum - block.items.length * before.height;
      const items = [...before.items, ...block.items];
      block = { items, height: before.height + block.height, sum, y: sum / items.length };
    }
    blocks.push(block);
  }
  for (const block of blocks) {
    let y = block.y;
    for (const item of block.items) { item.y = y; y += item.h + GAP_Y; }
  }
}
