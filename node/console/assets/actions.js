// Small conveniences: copy buttons, `/` for the search field, a menu that closes, the seconds of a call that is under way.

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
    const words = button.querySelector("span") ?? button;
    const before = words.textContent;
    // Without a text of its own, the button copies the code beside it.
    const code = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(button.dataset.copy || code.textContent);
      words.textContent = "Copied";
    } catch {
      words.textContent = button.dataset.copy || "Select and copy";
    }
    setTimeout(() => (words.textContent = before), 2000);
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  const writing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const field = document.getElementById("q") ?? document.getElementById("search");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  }
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
});

// On a phone the chosen part of a row of tabs may lie outside.
for (const chosen of document.querySelectorAll(".tabs [aria-current]")) {
  const row = chosen.closest(".tabs");
  row.scrollLeft = chosen.offsetLeft - row.offsetLeft - 16;
}

/** Counts on how long a call has been under way, as the page said it. */
function count() {
  for (const told of document.querySelectorAll("[data-elapsed]")) {
    told.dataset.began ??= performance.now() - 1000 * told.dataset.elapsed;
    told.textContent = `${Math.floor((performance.now() - told.dataset.began) / 1000)} s`;
  }
}
count();
setInterval(count, 1000);
