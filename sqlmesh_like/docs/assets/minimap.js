// The whole picture in a corner, with a frame around what is seen of it; drag the frame to go elsewhere.
function minimap(cy, placed) {
  const SIZE = innerWidth <= 860 ? { w: 112, h: 75 } : { w: 168, h: 112 }, ratio = Math.min(devicePixelRatio || 1, 2);
  const canvas = el("canvas", { class: "minimap", "aria-hidden": "true", width: SIZE.w * ratio, height: SIZE.h * ratio });
  let scale = 1, shift = { x: 0, y: 0 }, inks = {};
  const measure = (now) => {
    placed = now;
    scale = Math.min(SIZE.w / Math.max(placed.width, 1), SIZE.h / Math.max(placed.height, 1)) * 0.94;
    shift = { x: (SIZE.w - placed.width * scale) / 2, y: (SIZE.h - placed.height * scale) / 2 };
    inks = Object.fromEntries(["soft", "accent", "bad", "line"].map((name) => [name, colour(name)]));
    draw();
  };
  const draw = () => {
    const seen = cy.extent(), pen = canvas.getContext("2d");
    canvas.hidden = seen.x1 <= 0 && seen.y1 <= 0 && seen.x2 >= placed.width && seen.y2 >= placed.height;
    if (canvas.hidden) return;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, SIZE.w, SIZE.h);
    pen.globalAlpha = 0.6;
    for (const [id, { x, y, w, h }] of placed.items) {
      pen.fillStyle = placed.boxes.has(id) ? inks.line : placed.failed.has(id) ? inks.bad : inks.soft;
      pen.fillRect(shift.x + x * scale, shift.y + y * scale, Math.max(w * scale, 1), Math.max(h * scale, 1));
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 1.5;
    pen.strokeStyle = inks.accent;
    pen.strokeRect(shift.x + seen.x1 * scale, shift.y + seen.y1 * scale, seen.w * scale, seen.h * scale);
  };
  const go = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - shift.x) / scale, y = (event.clientY - box.top - shift.y) / scale;
    cy.pan({ x: cy.width() / 2 - x * cy.zoom(), y: cy.height() / 2 - y * cy.zoom() });
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); go(event); });
  canvas.addEventListener("pointermove", (event) => { if (canvas.hasPointerCapture(event.pointerId)) go(event); });
  cy.on("viewport resize", draw);
  return { canvas, measure };
}
