// Search: every word of the query has to be found; what it was found in decides the order.
const FIELDS = [
  ["name", 60], ["table", 40], ["columns", 20], ["tags", 15], ["id", 12], ["path", 8], ["text", 5], ["code", 1],
];

const index = nodes.map((node) => ({
  node,
  name: node.name.toLowerCase(),
  table: (node.table || "").toLowerCase(),
  columns: node.columns.map((column) => column.name.toLowerCase()).join("\n"),
  tags: node.tags.join("\n").toLowerCase(),
  id: node.id.toLowerCase(),
  path: (node.path || "").toLowerCase(),
  text: [node.description, ...node.columns.map((column) => column.description)].join(" ").replace(/<[^>]*>/g, " ").toLowerCase(),
  code: (node.raw || "").toLowerCase(),
}));
const RANK = { model: 3, source: 2, seed: 2, snapshot: 2, exposure: 2, analysis: 1, macro: 1, test: 0, unit_test: 0 };

function find(query, limit = 60) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const hits = [];
  for (const entry of index) {
    let score = 0;
    const matched = words.every((word) => {
      const points = scoreOf(entry, word);
      score += points;
      return points > 0;
    });
    if (matched) hits.push({ node: entry.node, score: score + RANK[entry.node.type], where: whereOf(entry, words[0]) });
  }
  hits.sort((a, b) => b.score - a.score || a.node.name.localeCompare(b.node.name));
  return Object.assign(hits.slice(0, limit), { total: hits.length });
}

function scoreOf(entry, word) {
  for (const [field, points] of FIELDS) {
    const at = entry[field].indexOf(word);
    if (at < 0) continue;
    if (field !== "name") return points;
    return points + (entry.name === word ? 60 : at === 0 ? 30 : 0);
  }
  return 0;
}

// Words that say why a node was found whose name does not show it.
function whereOf(entry, word) {
  if (entry.name.includes(word)) return "";
  const column = entry.node.columns.find((found) => found.name.toLowerCase().includes(word));
  if (column) return `column ${column.name}`;
  const field = FIELDS.map(([name]) => name).find((name) => entry[name].includes(word));
  return { tags: "in its tags", path: "in its path", text: "in its description", code: "in its SQL" }[field] || "";
}
