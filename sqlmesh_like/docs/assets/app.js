// The frame: which page is shown, the tree at the side, search, keys, light and dark.
const main = document.getElementById("main"), side = document.getElementById("side"), menu = document.getElementById("menu");
const go = (hash) => { location.hash = hash; };

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...rest] = path.split("/"), options = new URLSearchParams(query || "");
  const what = decodeURIComponent(rest.join("/"));
  if (view === "node") return byId.has(what) ? nodePage(byId.get(what), options) : missingPage(what);
  if (view === "graph") return graphPage(options);
  if (view === "runs") return runsPage();
  if (view === "rules") return rulesPage(what);
  return view ? missingPage(view) : overviewPage();
}

let shown = null;
function show() {
  const path = location.hash.split("?")[0], isSame = path === shown, at = scrollY;
  dropDrawings();
  main.replaceChildren(...route().flat().filter(Boolean));
  document.body.classList.toggle("wide", path.startsWith("#/graph"));
  markCurrent();
  closeMenu();
  const marked = main.querySelector(".line.marked, .rules .chosen");
  if (marked) marked.scrollIntoView({ block: "center" });
  else scrollTo(0, isSame ? at : 0);
  // Who reads the page by ear is told that another one is there; at the first page the browser does that.
  if (shown !== null && !isSame) (main.querySelector(".rules .chosen") || main.querySelector("h1"))?.focus({ preventScroll: true });
  else if (isSame) main.querySelector('[aria-pressed="true"]')?.focus({ preventScroll: true });
  shown = path;
}

function markCurrent() {
  for (const anchor of document.querySelectorAll(".tree a, .views a")) {
    const isHere = anchor.getAttribute("href") === (location.hash.split("?")[0] || "#/");
    if (isHere) anchor.setAttribute("aria-current", "page"); else anchor.removeAttribute("aria-current");
    if (isHere) for (let box = anchor.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
  }
  document.querySelector(".tree [aria-current]")?.scrollIntoView({ block: "nearest" });
}

function tree() {
  const holder = document.getElementById("tree");
  for (const [type, title] of Object.entries(KINDS)) {
    const found = nodes.filter((node) => node.type === type);
    if (!found.length) continue;
    const root = { folders: new Map(), leaves: [] };
    for (const node of found) {
      let level = root;
      for (const folder of type === "test" || type === "unit_test" ? [] : node.folders) {
        if (!level.folders.has(folder)) level.folders.set(folder, { folders: new Map(), leaves: [] });
        level = level.folders.get(folder);
      }
      level.leaves.push(node);
    }
    const isOpen = (type === "model" || type === "source") && found.length <= 60;
    holder.append(el("details", { class: "kind", open: isOpen }, el("summary", {}, title, el("span", { class: "count" }, count(found.length))), branch(root, type, found.length <= 60)));
  }
}

function branch(level, type, isOpen) {
  const folders = [...level.folders].sort(([a], [b]) => a.localeCompare(b));
  const leaves = level.leaves.sort((a, b) => a.name.localeCompare(b.name));
  return el("ul", {}, folders.map(([name, inner]) => el("li", {}, el("details", { open: isOpen }, el("summary", {}, name), branch(inner, type, isOpen)))),
    leaves.map((node) => el("li", {}, el("a", { class: `leaf k-${type}${ownHealth(node) ? ` is-${ownHealth(node).kind}` : ""}`, href: link(node), title: [node.name, ownHealth(node)?.text].filter(Boolean).join(": ") }, type === "source" ? node.name.split(".").slice(1).join(".") : node.name))));
}

const field = document.getElementById("search"), results = document.getElementById("results"), told = document.getElementById("found");
let asked = 0;
async function search() {
  const number = asked += 1, hits = await find(field.value), isOn = field.value.trim() !== "";
  if (number !== asked) return; // another letter was typed meanwhile
  results.hidden = !isOn;
  document.getElementById("tree").hidden = isOn;
  told.textContent = isOn ? (hits.total ? `${plural(hits.total, "result")}${hits.total > hits.length ? `, the best ${hits.length} shown` : ""}` : "Nothing found") : "";
  results.replaceChildren(...hits.map(({ node, where, href }) => el("li", {}, el("a", { href: inView(node, href) }, el("span", { class: "hit" }, node.name, kindBadge(node)), where && el("span", { class: "where" }, where)))));
}

// On the page of the graph a result is shown in the graph.
const inView = (node, href) => (canDraw && location.hash.startsWith("#/graph") && IN_GRAPH.has(node.type) ? `#/graph?focus=${encodeURIComponent(node.id)}` : href);

function searchKeys(event) {
  const links = [...results.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown" && links.length) links[Math.min(at + 1, links.length - 1)].focus();
  else if (event.key === "ArrowUp" && at >= 0) (at ? links[at - 1] : field).focus();
  else if (event.key === "Enter" && event.target === field && links.length) links[0].click();
  else if (event.key === "Escape") { field.value = ""; search(); field.focus(); }
  else return;
  event.preventDefault();
}

function openMenu() { document.body.classList.add("open"); menu.setAttribute("aria-expanded", "true"); }
function closeMenu() { document.body.classList.remove("open"); menu.setAttribute("aria-expanded", "false"); }

// file:// pages of some browsers have no storage.
const remembered = { get: () => { try { return localStorage.getItem("sml-theme"); } catch { return null; } }, set: (value) => { try { localStorage.setItem("sml-theme", value); } catch { /* it lasts for this visit */ } } };
function setTheme(theme) { if (theme) document.documentElement.dataset.theme = theme; }
function changeTheme() {
  const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(isDark ? "light" : "dark");
  remembered.set(isDark ? "light" : "dark");
  recolour();
}

setTheme(remembered.get());
tree();
field.addEventListener("input", search);
field.addEventListener("focus", () => { if (typeof MiniSearch === "function") ready ||= searchIndex(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
for (const part of [field, results]) part.addEventListener("keydown", searchKeys);
document.getElementById("theme").addEventListener("click", changeTheme);
menu.addEventListener("click", () => (document.body.classList.contains("open") ? closeMenu() : openMenu()));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) { event.preventDefault(); openMenu(); field.focus(); field.select(); }
  if (event.key === "Escape" && document.body.classList.contains("open")) { closeMenu(); menu.focus(); }
});
addEventListener("hashchange", show);
show();
