// Leads from the name that all programs of this machine share to the console's own, where the browser finds it. Without
// this script a button stays.

const PATIENCE_MS = 3000;
const { there } = document.body.dataset;
const place = location.pathname + location.search;

try {
  await fetch(`${there}/reached`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  location.replace(`${there}/panel/enter?next=${encodeURIComponent(place)}`);
} catch {
  location.replace(`/panel/stay?next=${encodeURIComponent(place)}`);
}
