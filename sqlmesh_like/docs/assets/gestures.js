// How a drawn graph is used: links over its cards for keys and screen readers, pointing, tapping, moving.
const readingOrder = ({ scene, placed }) => {
  const at = (one) => placed.items.get(one.id), along = placed.direction === "LR" ? "x" : "y", aside = placed.direction === "LR" ? "y" : "x";
  return [...scene.boxes, ...scene.cards].sort((a, b) => at(a)[along] - at(b)[along] || at(a)[aside] - at(b)[aside]);
};

// The link of a card, or the button of a group; of an open one it is its head.
function spot(view, one) {
  const place = view.placed.items.get(one.id), isBox = !one.label && Boolean(one.group) && view.open.has(one.id);
  const events = { onfocus: () => focused(view, one.id), onblur: () => highlight(view, null) };
  const spoken = one.group
    ? el("button", { type: "button", class: isBox ? "spot head" : "spot", "data-id": one.id, tabindex: -1, "aria-expanded": String(isBox), onclick: () => toggle(view, one.id), ...events, "aria-label": isBox ? null : `${one.group.label}, ${subtitle(one, healthOf(one))}` }, isBox ? `− ${one.group.label}` : "")
    : el("a", { class: "spot", href: link(byId.get(one.id)), "data-id": one.id, tabindex: -1, "aria-current": one.id === view.center ? "page" : null, ...events, "aria-label": spokenName(byId.get(one.id), view.rowsOf(one)) });
  Object.assign(spoken.style, { left: `${place.x}px`, top: `${place.y}px`, width: isBox ? "auto" : `${place.w}px`, height: isBox ? `${BOX.head}px` : `${place.h}px` });
  return spoken;
}

// As it is seen, then what is not: who speaks to the page says what stands on a card.
function spokenName(node, columns) {
  const readers = node.children.filter((id) => IN_GRAPH.has(byId.get(id).type)).length, health = healthOf({ id: node.id });
  return `${[node.name, health ? health.text : roleOf(node), ...columns].join(" ")}, ${node.type}, reads ${node.parents.length}, read by ${readers}`;
}

function alignSpots({ cy, spots }) {
  const { x, y } = cy.pan();
  spots.style.transform = `translate(${x}px, ${y}px) scale(${cy.zoom()})`;
}

// A card that gets the focus by keys moves into the picture.
function focused(view, id) {
  const { cy, placed, spots } = view, place = placed.items.get(id), zoom = cy.zoom(), pan = { ...cy.pan() };
  for (const one of spots.children) one.tabIndex = one.dataset.id === id ? 0 : -1;
  const x = place.x * zoom + pan.x, y = place.y * zoom + pan.y;
  if (x < 0 || x + place.w * zoom > cy.width()) pan.x = cy.width() / 2 - (place.x + place.w / 2) * zoom;
  if (y < 0 || y + place.h * zoom > cy.height()) pan.y = cy.height() / 2 - (place.y + place.h / 2) * zoom;
  cy.pan(pan);
  highlight(view, id);
}

// A card that is pointed at or has the focus shows all that it reads and all that reads it.
function highlight(view, id) {
  const { cy, trace, about } = view;
  const card = id && cy.getElementById(id);
  about.replaceChildren(...(card?.nonempty() ? aboutCard(view, id) : []));
  if (trace) return;
  cy.batch(() => {
    cy.elements().removeClass("on faded picked");
    if (!card?.nonempty() || card.hasClass("box")) return;
    const ways = card.predecessors().union(card.successors()).union(card);
    const ids = new Set(ways.map((one) => one.id()));
    cy.elements(".card, .what").forEach((one) => { if (!ids.has(one.data("of") || one.id())) one.addClass("faded"); });
    cy.edges().forEach((edge) => { edge.addClass(ids.has(edge.id()) ? "on" : "faded"); });
    card.addClass("picked");
  });
}

function aboutCard(view, id) {
  const card = view.scene.cards.find((one) => one.id === id), node = byId.get(id);
  if (!card) return [];
  if (card.group) return [el("strong", {}, card.group.label), ` ${subtitle(card, healthOf(card))}`];
  return [el("a", { href: link(node), tabindex: -1 }, node.name), ` ${node.type}, ${roleOf(node)}`, ...node.problems.map((one) => ` · ${one.status}: ${one.message}`)];
}

function watchGestures(view) {
  const { cy, frame, stage, isWhole } = view;
  let picked = null;
  cy.on("mouseover", ".card", (event) => { stage.style.cursor = "pointer"; highlight(view, event.target.id()); });
  cy.on("mouseout", ".card", () => { stage.style.cursor = ""; highlight(view, view.isWhole ? view.center : null); });
  cy.on("tap", (event) => { if (event.target === cy) { picked = null; view.center = isWhole ? null : view.center; highlight(view, null); } });
  cy.on("tap", ".card", (event) => {
    const id = event.target.id(), isTouch = event.originalEvent?.type.startsWith("touch");
    if (event.target.hasClass("group")) toggle(view, id);
    else if (isTouch && picked !== id) { picked = id; highlight(view, id); }
    else if (event.originalEvent?.ctrlKey || event.originalEvent?.metaKey) open(link(byId.get(id)), "_blank", "noopener");
    else go(link(byId.get(id)));
  });
  if (isWhole) return;
  // Within a page the wheel and one finger move the page; with Ctrl, and with two fingers, they move the graph. Cytoscape
  // listens at the stage, so what is not for it is held back one step further out.
  let isPinched = false;
  const holdBack = (kind, isForPage) => frame.addEventListener(kind, (event) => { if (stage.contains(event.target) && isForPage(event)) event.stopPropagation(); }, { capture: true });
  holdBack("wheel", (event) => !event.ctrlKey && !event.metaKey);
  holdBack("touchstart", (event) => { isPinched ||= event.touches.length > 1; return !isPinched; });
  holdBack("touchmove", () => !isPinched);
  for (const kind of ["touchend", "touchcancel"]) holdBack(kind, (event) => { const was = isPinched; isPinched &&= event.touches.length > 0; return !was; });
}

function moveByKeys(view) {
  const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  view.spots.addEventListener("keydown", (event) => {
    const step = STEPS[event.key], here = view.placed.items.get(event.target.dataset?.id);
    if (!step || !here) return;
    event.preventDefault();
    let best = null, least = Infinity;
    for (const other of view.spots.children) {
      const there = view.placed.items.get(other.dataset.id), dx = there.x - here.x, dy = there.y - here.y;
      const along = dx * step[0] + dy * step[1], aside = Math.abs(dx * step[1]) + Math.abs(dy * step[0]);
      if (along > 0 && along + aside * 2 < least) [best, least] = [other, along + aside * 2];
    }
    best?.focus({ preventScroll: true });
  });
}
