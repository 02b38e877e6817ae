// The sandbox: another operation as soon as it is chosen, code that follows the form, and a button that is pressed
// once. Without this script buttons do the same.

const PAUSE_MS = 250;
const form = document.getElementById("call");
const operations = document.getElementById("operations");
const progress = document.getElementById("progress");
let timer = 0;
let ticking = 0;
let request = null;

operations?.addEventListener("change", () => operations.requestSubmit());

/** The code that is open stays open. */
function exchange(newer) {
  const code = document.getElementById("code");
  const next = newer.getElementById("code");
  if (!next) return;
  const open = code.querySelector("details[open]")?.dataset.language;
  const parts = [...document.importNode(next, true).childNodes];
  for (const part of parts) {
    if (part.localName === "details") part.open = part.dataset.language === open;
  }
  code.replaceChildren(...parts);
}

function refresh() {
  request?.abort();
  request = new XMLHttpRequest();
  request.open("POST", form.action);
  request.responseType = "document";
  request.onload = () => {
    if (request.response) exchange(request.response);
  };
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    // Of a file only the name is needed, and sent.
    fields.append(name, typeof value === "string" ? value : value.name);
  }
  // Half a password is a wrong one.
  fields.delete("console_password");
  fields.set("act", "code");
  request.send(fields);
}

form?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(refresh, PAUSE_MS);
});

/** Says how long the call has been under way, until the page with its answer comes. */
function wait() {
  const began = Date.now();
  const within = progress.dataset.within;
  const tell = () => {
    const secs = Math.floor((Date.now() - began) / 1000);
    const most = within ? ` of ${within} s at most` : "";
    progress.textContent = `Waiting for the answer: ${secs} s${most}.`;
    progress.hidden = false;
  };
  ticking = setInterval(tell, 1000);
}

form?.addEventListener("submit", (event) => {
  const pressed = event.submitter;
  if (!pressed) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  pressed.setAttribute("aria-busy", "true");
  pressed.dataset.words = pressed.textContent;
  if (pressed.value === "live") {
    pressed.textContent = "Calling …";
    wait();
  }
});

// A page that the browser kept is used again.
window.addEventListener("pageshow", () => {
  if (!form) return;
  delete form.dataset.sent;
  clearInterval(ticking);
  progress.hidden = true;
  for (const pressed of form.querySelectorAll("[data-words]")) {
    pressed.textContent = pressed.dataset.words;
    pressed.removeAttribute("aria-busy");
    delete pressed.dataset.words;
  }
});
