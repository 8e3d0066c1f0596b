// The frame around a graph: moving, zooming, fitting.
function viewer(picture, scene, placed, { center, height }) {
  const view = { x: 0, y: 0, k: 1 };
  const apply = () => scene.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
  const PAD = 24, TOOLS = 30; // the buttons cover no card of a picture that fits
  const fit = () => {
    const box = picture.getBoundingClientRect();
    const whole = Math.min((box.width - 2 * PAD) / placed.width, (box.height - 2 * PAD - TOOLS) / placed.height);
    view.k = Math.max(Math.min(whole, 1), 0.03);
    // A picture that would be unreadably small starts at the page's own node.
    const place = center && placed.items.get(center);
    if (view.k < 0.55 && place) {
      view.k = 0.75;
      view.x = box.width / 2 - (place.x + place.w / 2) * view.k;
      view.y = box.height / 2 - (place.y + place.h / 2) * view.k;
    } else {
      view.x = (box.width - placed.width * view.k) / 2;
      view.y = (box.height - TOOLS - placed.height * view.k) / 2;
    }
    apply();
  };
  const zoom = (factor, x, y) => {
    const box = picture.getBoundingClientRect();
    const [px, py] = [x ?? box.width / 2, y ?? box.height / 2];
    const k = Math.max(Math.min(view.k * factor, 2.5), 0.03);
    view.x = px - ((px - view.x) * k) / view.k;
    view.y = py - ((py - view.y) * k) / view.k;
    view.k = k;
    apply();
  };
  const button = (label, sign, action) => el("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: action }, sign);
  const tools = el("div", { class: "tools" }, button("Zoom in", "+", () => zoom(1.25)), button("Zoom out", "−", () => zoom(0.8)), button("Fit", "⤢", fit));
  const frame = el("div", { class: "viewer" }, picture, tools);
  if (height !== "full") frame.style.height = `${Math.min(Math.max(placed.height + 2 * PAD + TOOLS, 150), 480)}px`;
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && height !== "full") return;
    event.preventDefault();
    const box = picture.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.12 : 0.89, event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  drag(picture, (dx, dy) => { view.x += dx; view.y += dy; apply(); });
  keepInSight(picture, scene, view, placed, apply);
  new ResizeObserver(fit).observe(picture);
  return frame;
}

function drag(picture, move) {
  let moved = 0;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    let last = [event.clientX, event.clientY];
    const gesture = new AbortController();
    moved = 0;
    addEventListener("pointermove", (now) => {
      const [dx, dy] = [now.clientX - last[0], now.clientY - last[1]];
      moved += Math.abs(dx) + Math.abs(dy);
      last = [now.clientX, now.clientY];
      move(dx, dy);
    }, { signal: gesture.signal });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => gesture.abort(), { signal: gesture.signal });
  });
  picture.addEventListener("dragstart", (event) => event.preventDefault());
  // The click at the end of a drag opens nothing.
  picture.addEventListener("click", (event) => { if (moved > 6) event.preventDefault(); }, true);
}

// A card that gets the focus by keys moves into the picture.
function keepInSight(picture, scene, view, placed, apply) {
  picture.addEventListener("focusin", (event) => {
    const place = placed.items.get(event.target.dataset?.id), box = picture.getBoundingClientRect();
    if (!place || !event.target.matches(":focus-visible")) return;
    const x = place.x * view.k + view.x, y = place.y * view.k + view.y;
    if (x < 0 || x + place.w * view.k > box.width) view.x = box.width / 2 - (place.x + place.w / 2) * view.k;
    if (y < 0 || y + place.h * view.k > box.height) view.y = box.height / 2 - (place.y + place.h / 2) * view.k;
    apply();
  });
}
