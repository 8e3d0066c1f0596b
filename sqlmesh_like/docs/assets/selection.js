// The selectors of `sml ls -s`, of the nodes that this site shows. Comparisons with another state are left to the command.
const TERM = /^(@)?(?:(\d*)(\+))?([^+@]+?)(?:(\+)(\d*))?$/;
const METHOD = /^([a-z_]+(?:\.[\w.]+)?):(.+)$/;
class SelectionError extends Error {}

// Nodes that a selection chooses, tests that come along included. Throws SelectionError.
function selected(text) {
  const union = new Set();
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const sets = word.split(",").map((term) => withRelatives(term));
    const found = [...sets[0]].filter((node) => sets.every((set) => set.has(node)));
    if (!found.length && !/\bresult:/.test(word)) throw new SelectionError(`${word} matches nothing`);
    for (const node of found) union.add(node);
  }
  return union;
}

function withRelatives(word) {
  const parts = TERM.exec(word);
  if (!parts || (parts[1] && (parts[3] || parts[5]))) throw new SelectionError(`${word} is malformed: write m, +m, m+, 2+m, m+3, @m, tag:x, path:x …`);
  const [, at, up, parents, body, children, down] = parts, direct = matching(body), found = new Set(direct);
  const add = (ids) => { for (const id of ids) found.add(byId.get(id)); };
  for (const node of direct) {
    if (at) for (const below of reach(node.id, "children")) add([below, ...reach(below, "parents")]);
    if (parents) add(reach(node.id, "parents", up === "" ? Infinity : Number(up)));
    if (children) add(reach(node.id, "children", down === "" ? Infinity : Number(down)));
  }
  for (const node of [...found]) add(node.children.filter((id) => isTest(byId.get(id))));
  return found;
}

const isTest = (node) => node.type === "test" || node.type === "unit_test";

// Ids of a node and of all so many steps up or down.
function reach(id, side, limit = Infinity) {
  const steps = new Map([[id, 0]]);
  for (const [one, depth] of steps) if (depth < limit) for (const next of byId.get(one)[side]) if (!steps.has(next)) steps.set(next, depth + 1);
  return steps.keys();
}

function matching(body) {
  const found = METHOD.exec(body), [method, ...rest] = (found ? found[1] : body.includes("/") ? "path" : /\.(sql|csv)$/.test(body) ? "file" : "fqn").split(".");
  const value = found ? found[2] : body, test = QUESTIONS[method];
  if (["state", "source_status"].includes(method)) throw new SelectionError(`${method}: compares with an earlier state, which a page has not: sml ls -s ${body} --state …`);
  if (!test) throw new SelectionError(`unknown method ${method}; known: ${Object.keys(QUESTIONS).join(", ")}`);
  return nodes.filter((node) => node.selection && test(node, value, rest.join(".")));
}

// `fnmatch` of Python: * any text, ? one letter, [abc] one of these, [!abc] another one.
const patterns = new Map();
function fits(text, pattern) {
  if (!patterns.has(pattern)) {
    const source = pattern.replace(/\[(!?)([^\]]+)\]|[*?]|[\\^$.|+(){}[\]/-]/g, (sign, not, inner) => (inner ? `[${not ? "^" : ""}${inner.replace(/[\\^[\]]/g, "\\$&")}]` : sign === "*" ? "[^]*" : sign === "?" ? "[^]" : `\\${sign}`));
    patterns.set(pattern, new RegExp(`^(?:${source})$`));
  }
  return patterns.get(pattern).test(String(text));
}

const parentFolders = (path) => path.split("/").reduce((paths, part) => [...paths, paths.length ? `${paths[paths.length - 1]}/${part}` : part], []);
const startsWith = (fqn, parts) => parts.length <= fqn.length && parts.every((part, number) => fits(fqn[number], part));
const ofType = (type) => (node, value) => {
  const at = value.lastIndexOf("."), [holder, name] = at < 0 ? ["*", value] : [value.slice(0, at), value.slice(at + 1)];
  return node.type === type && fits(node.selection.name, name) && fits(node.selection.fqn[0], holder);
};

const QUESTIONS = {
  fqn: ({ type, selection }, value) => {
    if (type === "source") return false;
    if (fits(selection.name, value) || (selection.version && fits(selection.version.of, value))) return true;
    const parts = value.split("."), last = selection.fqn.slice(-2).join("\u0000");
    if (selection.version && parts.join("\u0000") === last) return true;
    return startsWith(selection.fqn, parts) || startsWith(selection.fqn.slice(1), parts);
  },
  path: ({ selection }, value) => [...parentFolders(selection.path), "."].some((path) => fits(path, value.replace(/^\.\//, "").replace(/\/+$/, ""))),
  file: ({ selection }, value) => { const file = selection.path.split("/").pop(); return fits(file, value) || fits(file.replace(/(.)\.[^.]*$/, "$1"), value); },
  tag: (node, value) => node.tags.some((tag) => fits(tag, value)),
  source: ({ selection }, value) => {
    if (!selection.source) return false;
    const parts = value.split("."), [project, source, table] = parts.length === 3 ? parts : parts.length === 2 ? ["*", ...parts] : ["*", value, "*"];
    return fits(selection.fqn[0], project) && fits(selection.source, source) && fits(selection.name, table);
  },
  exposure: ofType("exposure"), unit_test: ofType("unit_test"),
  group: ({ selection }, value) => fits(selection.config?.group || "", value),
  access: (node, value) => node.type === "model" && node.selection.config?.access === value,
  config: ({ selection }, value, argument) => {
    const setting = argument.split(".").reduce((found, key) => (found && typeof found === "object" && !Array.isArray(found) ? found[key] : undefined), selection.config);
    return [setting].flat().some((one) => one !== undefined && typeof one !== "object" && fits(one, value));
  },
  resource_type: (node, value) => node.type === value || (value === "data_test" && node.type === "test"),
  test_type: (node, value) => (node.type === "unit_test" ? value === "unit" : node.type === "test" && [node.selection.test_type, "data"].includes(value)),
  test_name: ({ type, selection }, value) => { const name = type === "unit_test" ? selection.name : selection.tests; return name !== undefined && fits(name, value); },
  package: ({ selection }, value) => value === "this" || fits(selection.fqn[0], value),
  result: (node, value) => node.result?.status === value,
  version: ({ type, selection }, value) => {
    if (!["latest", "prerelease", "old", "none"].includes(value)) throw new SelectionError(`version:${value} is none of latest, prerelease, old, none`);
    return type === "model" && (selection.version?.side ?? "none") === value;
  },
};

// What of a selection a graph shows: tests stand for what they test.
function inGraph(chosen) {
  const tables = [...chosen].filter((node) => IN_GRAPH.has(node.type));
  const tested = [...chosen].filter(isTest).map((test) => byId.get(test.attached) || byId.get(test.parents[0]));
  const shown = tables.length ? tables : tested;
  return [...new Set(shown.filter(Boolean))].map((node) => node.id);
}
