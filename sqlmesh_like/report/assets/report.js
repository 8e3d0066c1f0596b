(() => {
"use strict";
const root = document.documentElement, tip = document.getElementById("tip"), theme = document.getElementById("theme");
const kept = (value) => { try { return value ? localStorage.setItem("sml-theme", value) : localStorage.getItem("sml-theme"); } catch { return null; } };

const chosen = kept();
if (chosen) root.dataset.theme = chosen;
theme.hidden = false;
theme.addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  kept(root.dataset.theme);
});

const show = (event) => {
  const mark = event.target.closest("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip.split("; ").join("\n");
  const gap = 14, box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + gap, innerWidth - box.width - 8)}px`;
  tip.style.top = `${event.clientY + gap + box.height > innerHeight ? event.clientY - gap - box.height : event.clientY + gap}px`;
};
for (const plot of document.querySelectorAll(".plot")) {
  plot.addEventListener("pointermove", show);
  plot.addEventListener("pointerleave", () => { tip.hidden = true; });
}
})();
