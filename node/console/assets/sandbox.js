// The sandbox: code that follows the form, and a button that is pressed once. Without this script buttons do the same.

const PAUSE_MS = 250;
const form = document.getElementById("call");
let timer = 0;
let request = null;

/** The language that is looked at stays the same, also where it was chosen while the code was under way. */
function exchange(newer) {
  const code = document.getElementById("code");
  const next = newer.getElementById("code");
  if (!next) return;
  const chosen = code.querySelector("input:checked")?.value;
  code.replaceChildren(...document.importNode(next, true).childNodes);
  const same = [...code.querySelectorAll("input")].find((input) => input.value === chosen);
  if (same) same.checked = true;
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

// Enter in the name saves. Without this script it presses the first button of the form, which is the free sample.
document.getElementById("saved-name")?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit(document.getElementById("save"));
});

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
  if (pressed.value === "live") pressed.textContent = "Calling …";
});

// A page that the browser kept is used again.
window.addEventListener("pageshow", () => {
  if (!form) return;
  delete form.dataset.sent;
  for (const pressed of form.querySelectorAll("[data-words]")) {
    pressed.textContent = pressed.dataset.words;
    pressed.removeAttribute("aria-busy");
    delete pressed.dataset.words;
  }
});
