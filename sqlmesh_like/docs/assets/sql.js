// SQL with Jinja, coloured. One expression cuts the text into tokens; what it does not know stays plain.
const WORDS = new Set((
  "all and anti any array as asc between by case cast cluster cross cube current decimal delete desc distinct distribute " +
  "else end escape except exists explode false filter first following for from full group grouping having in inner " +
  "insert intersect interval into is join last lateral left like limit map merge minus natural not null nulls offset on " +
  "or order outer over partition pivot preceding qualify range recursive right rlike rollup row rows select semi set sets " +
  "sort struct tablesample then true unbounded union update using values view when where window with within").split(" "));
const TOKEN = new RegExp([
  "(?<comment>--[^\\n]*|\\/\\*[\\s\\S]*?\\*\\/|\\{#[\\s\\S]*?#\\})", "(?<jinja>\\{\\{[\\s\\S]*?\\}\\}|\\{%[\\s\\S]*?%\\})",
  "(?<text>'(?:[^'\\\\]|\\\\.|'')*'|\"(?:[^\"\\\\]|\\\\.)*\")", "(?<name>`[^`]*`)",
  "(?<number>\\b\\d+(?:\\.\\d+)?\\b)", "(?<word>[A-Za-z_]\\w*)(?<call>\\s*(?=\\())?",
].join("|"), "g");

function coloured(sql) {
  const parts = [];
  let at = 0;
  for (const found of sql.matchAll(TOKEN)) {
    const groups = found.groups;
    let kind = Object.keys(groups).find((name) => name !== "call" && groups[name] !== undefined);
    if (kind === "word") {
      kind = WORDS.has(groups.word.toLowerCase()) ? "keyword" : groups.call !== undefined ? "function" : "";
    }
    if (found.index > at) parts.push(["", sql.slice(at, found.index)]);
    parts.push([kind, found[0]]);
    at = found.index + found[0].length;
  }
  parts.push(["", sql.slice(at)]);
  return parts;
}

// A block of numbered lines; `marked` is the line that a reason points at.
function codeBlock(sql, marked = 0) {
  const lines = [[]];
  for (const [kind, text] of coloured(sql.replace(/\s+$/, ""))) {
    text.split("\n").forEach((part, number) => {
      if (number) lines.push([]);
      if (part) lines[lines.length - 1].push(kind ? el("span", { class: `t-${kind}` }, part) : part);
    });
  }
  const body = lines.map((parts, number) =>
    el("span", { class: number + 1 === marked ? "line marked" : "line" }, ...parts, "\n"));
  const copy = el("button", { type: "button", class: "copy", onclick: () => copyText(sql, copy) }, "Copy");
  return el("div", { class: "code" }, copy, el("pre", { tabindex: 0, "aria-label": "SQL" }, el("code", {}, body)));
}

function copyText(text, button) {
  const area = el("textarea", { class: "offscreen", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  // The clipboard of navigator is missing on file:// pages.
  const done = document.execCommand("copy");
  area.remove();
  button.focus();
  button.textContent = done ? "Copied" : "Select the text to copy";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
