// Column lineage: which columns a column is made of, and which are made of it.
const VALUES = new Set(["copied", "computed", "aggregated"]);
const ROLES = { filters: "filtered by", joins: "joined on", groups: "grouped by" };
const columnKey = (node, column) => `${node}\u0000${column.toLowerCase()}`;
const above = new Map(), beneath = new Map(), deciding = new Map();
for (const [from, column, to, reader, how] of data.edges) {
  const edge = { from, column, to, reader, how };
  if (!VALUES.has(how)) { push(deciding, to, edge); continue; }
  push(above, columnKey(to, reader), edge);
  push(beneath, columnKey(from, column), edge);
}

function push(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}

const hasLineage = (node, column) =>
  above.has(columnKey(node.index, column)) || beneath.has(columnKey(node.index, column));

// All edges on the ways up and down from one column, and the columns on them by node.
function traced(node, column) {
  const edges = new Set();
  const columns = new Map([[node.index, [column]]]);
  follow(above, columnKey(node.index, column), (edge) => [edge.from, edge.column]);
  follow(beneath, columnKey(node.index, column), (edge) => [edge.to, edge.reader]);
  return { edges: [...edges], columns };

  function follow(map, start, next) {
    const waiting = [start], seen = new Set(waiting);
    while (waiting.length) {
      for (const edge of map.get(waiting.pop()) || []) {
        edges.add(edge);
        const [other, name] = next(edge), key = columnKey(other, name);
        const known = columns.get(other) || [];
        if (!known.some((one) => one.toLowerCase() === name.toLowerCase())) columns.set(other, [...known, name]);
        if (!seen.has(key)) { seen.add(key); waiting.push(key); }
      }
    }
  }
}

// What decides which rows there are, in words: [role, columns].
function rowsDecidedBy(node, column) {
  const roles = new Map();
  for (const edge of deciding.get(node.index) || []) {
    if (edge.reader !== "*" && edge.reader.toLowerCase() !== column.toLowerCase()) continue;
    push(roles, ROLES[edge.how], edge);
  }
  return [...roles];
}
