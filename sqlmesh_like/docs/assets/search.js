// Search by MiniSearch: every word has to be found, begun or nearly so; what it is found in decides the order.
const BOOST = { name: 12, table: 6, columns: 4, tags: 3, path: 1.5, text: 1.5, code: 1 };
const RANK = { model: 1.3, source: 1.15, seed: 1.1, snapshot: 1.1, exposure: 1.1, analysis: 0.8, macro: 0.7, test: 0.4, unit_test: 0.4 };
const WHERE = { tags: "in its tags", path: "in its path", text: "in its description", code: "in its SQL" };
const MOST_HITS = 60;
let ready = null;

const documentOf = (node) => ({
  id: node.index, name: node.name, table: node.table || "", columns: node.columns.map((column) => column.name).join("\n"), tags: node.tags.join("\n"), path: node.path || "",
  text: [node.description, ...node.columns.map((column) => column.description)].join(" ").replace(/<[^>]*>/g, " "), code: node.raw || "",
});

// Letters that changed places are two mistakes. The index is made when somebody begins to search, a few nodes at a time.
function searchIndex() {
  const index = new MiniSearch({ fields: Object.keys(BOOST), searchOptions: {
    boost: BOOST, combineWith: "AND", prefix: (word) => word.length > 1, fuzzy: (word) => (word.length > 4 ? 2 : word.length > 3 ? 1 : false), weights: { fuzzy: 0.2, prefix: 0.6 },
    boostDocument: (id) => RANK[nodes[id].type],
  } });
  return index.addAllAsync(nodes.map(documentOf), { chunkSize: 100 }).then(() => index);
}

async function find(query) {
  if (!query.trim()) return Object.assign([], { total: 0 });
  if (typeof MiniSearch !== "function") return findParts(query);
  ready ||= searchIndex();
  const wanted = query.trim().toLowerCase(), hits = (await ready).search(query);
  const exact = (name) => (name.toLowerCase() === wanted ? 2 : name.toLowerCase().startsWith(wanted) ? 1 : 0);
  const ordered = hits.map((hit) => ({ node: nodes[hit.id], hit })).sort((a, b) => exact(b.node.name) - exact(a.node.name) || b.hit.score - a.hit.score);
  return Object.assign(ordered.slice(0, MOST_HITS).map(({ node, hit }) => ({ node, ...reasonOf(node, hit) })), { total: hits.length });
}

// Where a word was found that the name does not show, and the address that leads there.
function reasonOf(node, { match, queryTerms }) {
  const found = Object.entries(match), inName = found.filter(([, fields]) => fields.includes("name") || fields.includes("table"));
  if (inName.length >= queryTerms.length) return { where: "", href: link(node) };
  for (const [word, fields] of found.filter((one) => !inName.includes(one))) {
    const column = fields.includes("columns") && node.columns.find((one) => one.name.toLowerCase().includes(word));
    if (column) return { where: `column ${column.name}`, href: hasLineage(node, column.name) ? `${link(node)}?column=${encodeURIComponent(column.name)}` : link(node) };
    const field = ["tags", "text", "path", "code"].find((one) => fields.includes(one));
    const line = field === "code" ? node.raw.split("\n").findIndex((text) => text.toLowerCase().includes(word)) + 1 : 0;
    if (field) return { where: WHERE[field], href: line ? `${link(node)}?line=${line}` : link(node) };
  }
  return { where: "", href: link(node) };
}

// Without the library: names, tables and columns that hold all the words.
function findParts(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = nodes.filter((node) => words.every((word) => [node.name, node.table || "", ...node.columns.map((column) => column.name)].some((text) => text.toLowerCase().includes(word))));
  return Object.assign(hits.slice(0, MOST_HITS).map((node) => ({ node, where: "", href: link(node) })), { total: hits.length });
}
