// The nodes of a graph by folder: a tree of groups, and what of it is seen while some of them are open.
const ROOTS = { source: "Sources", seed: "Seeds", snapshot: "Snapshots", exposure: "Exposures", analysis: "Analyses" };

// The folders that a node is in: models are where their files are, everything else first by what it is.
const foldersOf = (node) => (ROOTS[node.type] ? [ROOTS[node.type], ...node.folders] : node.folders);

// { key, label, groups, ids, size }: a group that would hold one thing alone is left out.
function groupTree(ids) {
  const root = { key: "", label: "", groups: [], ids: [], size: 0 }, known = new Map();
  for (const id of ids) {
    let level = root;
    foldersOf(byId.get(id)).forEach((label) => {
      const key = `${level.key}/${label}`;
      if (!known.has(key)) {
        known.set(key, { key, label, groups: [], ids: [], size: 0 });
        level.groups.push(known.get(key));
      }
      level = known.get(key);
    });
    level.ids.push(id);
  }
  return lean(root, true);
}

// A folder with so many nodes is parted by what their names begin with: stg_…, dim_…
const CROWDED = 40;
function parted(group, words = 1) {
  if (group.ids.length <= CROWDED || words > 3) return;
  const parts = new Map();
  for (const id of group.ids) {
    const named = byId.get(id).name.split(".").pop().split("_"), label = named.length > words ? `${named.slice(0, words).join("_")}_…` : "";
    parts.set(label, [...(parts.get(label) || []), id]);
  }
  const groups = [...parts].filter(([label, ids]) => label && ids.length > 1 && ids.length < group.ids.length);
  if (!groups.length) { parted(group, words + 1); return; }
  const moved = new Set(groups.flatMap(([, ids]) => ids));
  group.ids = group.ids.filter((id) => !moved.has(id));
  for (const [label, ids] of groups) {
    const inner = { key: `${group.key}/${label}`, label, groups: [], ids, size: 0 };
    parted(inner, words + 1);
    group.groups.push(inner);
  }
}

function lean(group, isRoot) {
  parted(group);
  const inner = [];
  for (const each of group.groups.map((one) => lean(one, false))) {
    if (each.groups.length === 0 && each.ids.length === 1) group.ids.push(each.ids[0]);
    else inner.push(each);
  }
  const only = inner.length === 1 && group.ids.length === 0 ? inner[0] : null;
  if (only) return isRoot ? { ...only, key: "", label: "" } : { ...only, label: `${group.label}/${only.label}` };
  return { ...group, groups: inner, size: group.ids.length + inner.reduce((sum, one) => sum + one.size, 0) };
}

const idsIn = (group) => [...group.ids, ...group.groups.flatMap(idsIn)];
const groupsIn = (group) => group.groups.flatMap((one) => [one, ...groupsIn(one)]);

// Keys of the groups above this depth: with 1 all are closed, with 2 those at the top are open.
const openTo = (group, depth) => (depth <= 1 ? [] : group.groups.flatMap((one) => [one.key, ...openTo(one, depth - 1)]));

// What is seen: cards of nodes and of closed groups, boxes around what is in an open one, and edges between cards.
function sceneOf(tree, open) {
  const scene = { cards: [], boxes: [], edges: [] }, cardOf = new Map();
  const walk = (group, box) => {
    for (const id of group.ids) { scene.cards.push({ id, box }); cardOf.set(id, id); }
    for (const inner of group.groups) {
      if (open.has(inner.key)) {
        scene.boxes.push({ id: inner.key, group: inner, box });
        walk(inner, inner.key);
      } else {
        scene.cards.push({ id: inner.key, group: inner, box });
        for (const id of idsIn(inner)) cardOf.set(id, inner.key);
      }
    }
  };
  walk(tree, null);
  const seen = new Map();
  for (const [id, from] of cardOf) {
    for (const child of byId.get(id).children) {
      const to = cardOf.get(child);
      if (to === undefined || to === from) continue;
      const key = `${from}\u0000${to}`;
      if (seen.has(key)) { seen.get(key).count += 1; continue; }
      seen.set(key, { id: key, from, to, count: 1 });
    }
  }
  scene.edges = [...seen.values()];
  return scene;
}

// Keys of all groups that a node is in: it is seen when they are open.
function groupsAround(tree, id) {
  const path = [];
  const walk = (group) => {
    if (group.ids.includes(id)) return true;
    const inner = group.groups.find(walk);
    if (inner) path.push(inner.key);
    return Boolean(inner);
  };
  walk(tree);
  return path;
}
