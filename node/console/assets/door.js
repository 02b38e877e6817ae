// Leads from the name that all programs of this machine share to the console's own, where the browser finds it. Without
// this script a button stays. A page to log in at names the place to go on to, and stays where nothing is found.

const PATIENCE_MS = 3000;
const { there, next } = document.querySelector("[data-there]").dataset;
const place = next ?? location.pathname + location.search;

try {
  await fetch(`${there}/reached`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  location.replace(`${there}/panel/enter?next=${encodeURIComponent(place)}`);
} catch {
  if (next === undefined) location.replace(`/panel/stay?next=${encodeURIComponent(place)}`);
}
