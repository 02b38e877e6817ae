// Search as you type: the address that the form would go to is fetched, and the results are exchanged.

const form = document.getElementById("filters");
const results = document.getElementById("results");
const PAUSE_MS = 120;
const SAY_MS = 300;
let timer = 0;
let request = null;

function address() {
  const chosen = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...chosen]) if (value === "") chosen.delete(name);
  const query = chosen.toString();
  return query ? `${form.action}?${query}` : form.action;
}

function search() {
  const to = address();
  request?.abort();
  request = new XMLHttpRequest();
  request.open("GET", to);
  request.responseType = "document";
  results.setAttribute("aria-busy", "true");
  // Soon answered, it is not said: words that flash by are read by nobody.
  const saying = setTimeout(() => (document.getElementById("count").textContent = "Searching …"), SAY_MS);
  request.onabort = () => clearTimeout(saying);
  request.onload = () => {
    clearTimeout(saying);
    results.removeAttribute("aria-busy");
    const found = request.response?.getElementById("results");
    if (request.status !== 200 || !found) {
      location.assign(to);
      return;
    }
    results.replaceChildren(...document.importNode(found, true).childNodes);
    history.replaceState(null, "", to);
  };
  request.onerror = () => {
    clearTimeout(saying);
    results.removeAttribute("aria-busy");
    document.getElementById("count").textContent = "The node does not answer. Type again to retry.";
  };
  request.send();
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(search, PAUSE_MS);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  search();
});
