// Charts by keyboard: each is one stop, and within it arrows lead from one part of the time to the next, whose values are said and
// shown. Without this script the table below each chart has every value.

const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };

const parts = (plot) => [...plot.querySelectorAll(".hints rect")];

function point(plot, at) {
  const all = parts(plot);
  const words = all[at].querySelector("title").textContent;
  plot.querySelector(".here")?.classList.remove("here");
  all[at].classList.add("here");
  plot.setAttribute("aria-valuenow", at + 1);
  plot.setAttribute("aria-valuetext", words);
  plot.querySelector(".told").textContent = words;
}

/** Makes a stop of a chart that has values; it begins at the newest. */
function makeStop(plot) {
  const count = parts(plot).length;
  if (plot.hasAttribute("role") || !count || !plot.querySelector(".bars, .line")) return;
  const told = document.createElement("p");
  told.className = "told";
  told.setAttribute("aria-hidden", "true");
  plot.append(told);
  plot.tabIndex = 0;
  plot.setAttribute("role", "slider");
  plot.setAttribute("aria-labelledby", plot.querySelector("svg > title").id);
  plot.setAttribute("aria-valuemin", 1);
  plot.setAttribute("aria-valuemax", count);
  point(plot, count - 1);
}

const makeStops = () => document.querySelectorAll(".plot").forEach(makeStop);
makeStops();
// Parts of a page are exchanged for newer ones.
new MutationObserver(makeStops).observe(document.getElementById("main"), { childList: true, subtree: true });

document.addEventListener("keydown", (event) => {
  const plot = event.target.closest(".plot[role=slider]");
  if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = parts(plot).length - 1;
  const now = plot.getAttribute("aria-valuenow") - 1;
  const to = { Home: 0, End: last }[event.key] ?? now + STEPS[event.key];
  if (Number.isNaN(to)) return;
  event.preventDefault();
  point(plot, Math.min(Math.max(to, 0), last));
});
