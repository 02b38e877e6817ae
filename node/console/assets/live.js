// Keeps the parts of a page marked `data-live` up to date: when the node says that something changed, the page
// is fetched anew and its live parts are exchanged. Without this script, loading the page does the same. While the
// node does not answer, the page says so.

// A stream that ends in good order is open again before this.
const AWAY_AFTER_MS = 5000;

/** Fetches a page of ours as a document. Scripts in it do not run. */
export function fetchPage(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () => {
      // A log-in page in place of the one asked for means that the session has ended.
      const moved = new URL(request.responseURL).pathname !== new URL(address, location.href).pathname;
      if (request.status === 200 && request.response && !moved) resolve(request.response);
      else reject(new Error(`status ${request.status}`));
    };
    request.onerror = () => reject(new Error("not reached"));
    request.send();
  });
}

/** Whether somebody is about to use what stands in `part`: it is left alone then. */
function isInUse(part) {
  const open = part.querySelector("details[open]");
  return part.contains(document.activeElement) || open !== null || !getSelection().isCollapsed;
}

/** Exchanges the live parts for those of a newer page. */
export function exchange(newer, force = false) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = newer.getElementById(part.id);
    if (next && (force || !isInUse(part)) && next.innerHTML !== part.innerHTML) {
      part.replaceChildren(...document.importNode(next, true).childNodes);
    }
  }
}

// What a form was answered with is no page to fetch again, and holds what was typed.
const isAnswer = "answer" in document.body.dataset;
let waiting = false;

async function refresh() {
  if (waiting || document.hidden || isAnswer) return;
  waiting = true;
  try {
    exchange(await fetchPage(location.href));
  } catch {
    // The next event tries again.
  } finally {
    waiting = false;
  }
}

function follow() {
  const events = new EventSource("/panel/events");
  const away = document.getElementById("away");
  let timer = 0;
  let lost = false;
  events.addEventListener("changed", refresh);
  events.addEventListener("error", () => {
    lost = true;
    // A stream that is closed for good was refused by the node, which therefore is there.
    if (timer || events.readyState === EventSource.CLOSED) return;
    timer = setTimeout(() => (away.hidden = false), AWAY_AFTER_MS);
  });
  events.addEventListener("open", () => {
    clearTimeout(timer);
    timer = 0;
    away.hidden = true;
    if (lost) refresh();
    lost = false;
  });
  document.addEventListener("visibilitychange", refresh);
  window.addEventListener("pagehide", () => events.close());
}

if (document.querySelector("[data-live]") && !window.farthingLive) {
  window.farthingLive = true;
  follow();
}
