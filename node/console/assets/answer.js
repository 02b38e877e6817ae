// An answer as a tree: search in it, and copy a value or the path to it. Arrows lead from one value to the next. Without this
// script it folds all the same.

const MARKED = "aria-current";

/** What stands in an element as JSON, read back; `undefined` where it is cut. */
function read(element) {
  if (!element || element.classList.contains("cut")) return undefined;
  try {
    return JSON.parse(element.textContent);
  } catch {
    return undefined;
  }
}

/** `.name`, `["a name"]` or `[3]`: one step to the value of a row; `undefined` where its name is cut. */
function step(row) {
  if (row.parentElement.localName === "ol") return `[${[...row.parentElement.children].indexOf(row)}]`;
  const name = read(row.querySelector("b"));
  if (name === undefined) return undefined;
  return /^[A-Za-z_$][\w$]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}

/** The path to the value of a row, from the whole document. */
function path(tree, row) {
  const steps = [];
  for (let at = row; at && tree.contains(at); at = at.parentElement.closest("li")) steps.unshift(step(at));
  return steps.includes(undefined) ? "" : steps.join("").replace(/^\./, "");
}

/** The text that is copied of a row: a text itself, anything else as JSON; of what folds there is none. */
function value(row) {
  const own = row.querySelector(":scope > i");
  const found = read(own);
  if (found === undefined) return "";
  return typeof found === "string" ? found : own.textContent;
}

/** The place in a row that takes the focus. */
function handle(row) {
  return row.querySelector(":scope > details > summary") ?? row.querySelector(":scope > i") ?? row;
}

function isSeen(row) {
  return row.parentElement.closest("details:not([open])") === null;
}

function prepare() {
  const tree = document.getElementById("tree");
  const tools = document.getElementById("tree-tools");
  if (!tree || !tools?.hidden) return;
  const rows = [...tree.querySelectorAll("li:not(.more)")];
  const [search, found] = [document.getElementById("tree-search"), document.getElementById("tree-found")];
  const buttons = [document.getElementById("copy-value"), document.getElementById("copy-path")];
  tools.hidden = false;
  // One stop for the tabulator; arrows do the rest.
  for (const row of rows) handle(row).tabIndex = -1;
  if (rows.length > 0) handle(rows[0]).tabIndex = 0;

  function choose(row) {
    for (const marked of tree.querySelectorAll(`[${MARKED}]`)) {
      marked.removeAttribute(MARKED);
      marked.tabIndex = -1;
    }
    handle(row).setAttribute(MARKED, "true");
    handle(row).tabIndex = 0;
    const texts = [value(row), path(tree, row)];
    buttons.forEach((button, at) => {
      button.dataset.copy = texts[at];
      button.disabled = texts[at] === "";
    });
    document.getElementById("tree-path").textContent = texts[1];
  }

  tree.addEventListener("focusin", (event) => {
    const row = event.target.closest("li");
    if (row) choose(row);
  });
  tree.addEventListener("click", (event) => {
    const row = event.target.closest("li:not(.more)");
    if (row) handle(row).focus();
  });
  tree.addEventListener("keydown", (event) => {
    const row = event.target.closest("li");
    const details = row?.querySelector(":scope > details");
    const seen = rows.filter(isSeen);
    const to = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (to !== undefined && seen.length > 0) {
      const at = Math.min(Math.max(seen.indexOf(row) + to, 0), seen.length - 1);
      handle(seen[at]).focus();
    } else if (details && event.key === "ArrowRight") details.open = true;
    else if (details && event.key === "ArrowLeft") details.open = false;
    else return;
    event.preventDefault();
  });
  search.addEventListener("input", () => {
    const words = search.value.trim().toLowerCase();
    let count = 0;
    for (const text of tree.querySelectorAll("b, i")) {
      const isFound = words !== "" && text.textContent.toLowerCase().includes(words);
      text.classList.toggle("hit", isFound);
      if (!isFound) continue;
      count += 1;
      for (let at = text.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    }
    found.textContent = words === "" ? "" : `${count} found`;
    tree.querySelector(".hit")?.scrollIntoView({ block: "nearest" });
  });
}

prepare();
// The answer of a call that was under way comes into a page that is open.
new MutationObserver(prepare).observe(document.getElementById("live-answer") ?? document.body, { childList: true });
