// Holds the key that changes need, and the one that tells the node that this browser was here before. The log-in hands
// them over behind the `#` of an address, which browsers send to no server; the storage they are put into belongs to this
// origin alone, unlike the cookie, which goes to every port of the host. Without this script, or without the key, every
// change asks for the password.
//
// Anybody can link to an address of ours with something behind its `#`. So keys are taken on one page alone: the one that
// a log-in leads to, in the tab in which it was sent.

const PREFIX = "farthing-";
const AWAITED = "farthing-awaited";

function held(name) {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

// Whether this page follows a log-in; asked once.
function isAwaited() {
  try {
    const awaited = sessionStorage.getItem(AWAITED) !== null;
    sessionStorage.removeItem(AWAITED);
    return awaited;
  } catch {
    return false;
  }
}

const awaited = isAwaited();
const given = [...new URLSearchParams(location.hash.slice(1))].filter(
  ([name, value]) => ["key", "device"].includes(name) && /^[0-9a-f]{64}$/.test(value),
);
if (given.length > 0) {
  try {
    for (const [name, value] of awaited ? given : []) localStorage.setItem(PREFIX + name, value);
  } catch {
    // A browser that stores nothing is asked for the password.
  }
  history.replaceState(history.state, "", location.pathname + location.search);
}

// Whatever reads a form of ours, a submit or a script, gets the keys in the fields that wait for them.
document.addEventListener("formdata", (event) => {
  for (const [field, name] of [["console_key", "key"], ["device", "device"]]) {
    if (event.formData.has(field)) event.formData.set(field, held(name));
  }
  if (event.target.matches("[data-log-in]")) {
    try {
      sessionStorage.setItem(AWAITED, "1");
    } catch {
      // Then no key is taken.
    }
  }
});

// Forms with files ask for the password where there is no key.
if (held("key")) {
  for (const field of document.querySelectorAll("[data-without-key]")) field.remove();
}
