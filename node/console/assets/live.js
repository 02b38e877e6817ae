// Keeps the parts of a page marked `data-live` up to date: when the node says that something changed, the page
// is fetched anew and its live parts are exchanged. Without this script, loading the page does the same. While the
// node does not answer, the page says since when; when the log-in has ended, it says that.

// The node says something every two seconds. A stream that ends in good order is open again before this.
const AWAY_AFTER_MS = 5000;
const TICK_MS = 1000;

/** The error of a page that leads to the log-in. */
class LoggedOut extends Error {}

/** Fetches a page of ours as a document. Scripts in it do not run. */
export function fetchPage(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    request.onload = () => {
      // A log-in page in place of the one asked for means that the session has ended.
      const { pathname } = new URL(request.responseURL);
      const moved = pathname !== new URL(address, location.href).pathname;
      if (request.status === 200 && request.response && !moved) resolve(request.response);
      else reject(pathname === "/panel/login" ? new LoggedOut() : new Error(`status ${request.status}`));
    };
    request.onerror = () => reject(new Error("not reached"));
    request.send();
  });
}

/** Whether something was typed into `part`, or is about to be. */
function isTypedIn(part) {
  const fields = [...part.querySelectorAll("input:not([type=hidden]), select, textarea")];
  return fields.some((field) => field === document.activeElement || (field.defaultValue ?? field.value) !== field.value);
}

/** Whether somebody is about to use what stands in `part`: it is left alone then. */
function isInUse(part) {
  // What is one state goes over into the next as a whole.
  if (part.dataset.live === "whole") return isTypedIn(part);
  const open = part.querySelector("details[open]");
  return part.contains(document.activeElement) || open !== null || !getSelection().isCollapsed;
}

/** Exchanges the live parts for those of a newer page. */
export function exchange(newer, force = false) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = newer.getElementById(part.id);
    if (!next || (!force && isInUse(part))) continue;
    // What has come to its end changes no more.
    if (!("live" in next.dataset)) delete part.dataset.live;
    if (next.innerHTML === part.innerHTML) continue;
    const hadFocus = part.contains(document.activeElement);
    part.replaceChildren(...document.importNode(next, true).childNodes);
    if (hadFocus) (part.closest("[tabindex]") ?? document.getElementById("main")).focus({ preventScroll: true });
  }
}

// What a form was answered with is no page to fetch again, and holds what was typed.
const isAnswer = "answer" in document.body.dataset;
const away = document.getElementById("away");
let waiting = false;
let isOutdated = false;
// A click is lost if what was pressed is exchanged before the pointer is up.
let isPressed = false;
// Of a clock that nobody sets.
let heardAt = performance.now();
let tickedAt = performance.now();

function sayLoggedOut(events) {
  events.close();
  away.hidden = true;
  document.getElementById("ended").hidden = false;
}

async function refresh(events) {
  if (document.hidden || isAnswer) return;
  // A page that is on its way may be older than what changed now: it is fetched once more then.
  isOutdated = true;
  if (waiting) return;
  waiting = true;
  try {
    while (isOutdated && !isPressed) {
      isOutdated = false;
      const newer = await fetchPage(location.href);
      if (isPressed) isOutdated = true;
      else exchange(newer);
    }
  } catch (error) {
    if (error instanceof LoggedOut) sayLoggedOut(events);
    // The next change tries again, and so does a stream that opens again.
    else isOutdated = true;
  } finally {
    waiting = false;
  }
}

/** Keeps the page as it is while a pointer is down. */
function waitForPointer(events) {
  document.addEventListener("pointerdown", () => (isPressed = true), true);
  const released = (event) => {
    // The list of a select, which belongs to the browser, swallows the release; the next move shows it.
    if (!isPressed || (event.type === "pointermove" && event.buttons !== 0)) return;
    isPressed = false;
    if (isOutdated) refresh(events);
  };
  for (const name of ["pointerup", "pointercancel", "pointermove"]) document.addEventListener(name, released, true);
}

function follow() {
  // The node says at once that something changed if the page is older than the stream.
  const events = new EventSource(`/panel/events?since=${document.body.dataset.changes}`);
  const heard = () => {
    heardAt = performance.now();
    away.hidden = true;
  };
  const judge = () => {
    const now = performance.now();
    // A page that slept heard nothing.
    if (now - tickedAt > 3 * TICK_MS) heardAt = now;
    tickedAt = now;
    const isMissed = events.readyState !== EventSource.CLOSED && now - heardAt > AWAY_AFTER_MS;
    if (!isMissed || !away.hidden) return;
    document.getElementById("away-since").textContent = new Date(Date.now() - (now - heardAt)).toLocaleTimeString();
    away.hidden = false;
  };
  events.addEventListener("here", heard);
  events.addEventListener("changed", () => {
    heard();
    refresh(events);
  });
  events.addEventListener("ended", () => sayLoggedOut(events));
  events.addEventListener("error", () => {
    // A stream that is closed for good was refused by the node, which therefore is there.
    if (events.readyState === EventSource.CLOSED) {
      away.hidden = true;
      refresh(events);
    }
  });
  events.addEventListener("open", () => {
    heard();
    if (isOutdated) refresh(events);
  });
  waitForPointer(events);
  const ticking = setInterval(judge, TICK_MS);
  document.addEventListener("visibilitychange", () => refresh(events));
  window.addEventListener("pagehide", () => {
    events.close();
    clearInterval(ticking);
  });
}

if (document.querySelector("[data-live]") && !window.farthingLive) {
  window.farthingLive = true;
  follow();
}
