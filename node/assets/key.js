// Holds the key that changes need. The log-in hands it over behind the `#` of an address, which browsers send to no
// server; the storage it is put into belongs to this origin alone, unlike the cookie, which goes to every port of the
// host. Without this script, or without the key, every change asks for the password.

const NAME = "farthing-key";

function held() {
  try {
    return localStorage.getItem(NAME) ?? "";
  } catch {
    return "";
  }
}

const given = /^#key=([0-9a-f]{64})$/.exec(location.hash);
if (given) {
  try {
    localStorage.setItem(NAME, given[1]);
  } catch {
    // A browser that stores nothing is asked for the password.
  }
  history.replaceState(history.state, "", location.pathname + location.search);
}

// Whatever reads a form of ours, a submit or a script, gets the key in the field that waits for it.
document.addEventListener("formdata", (event) => {
  if (event.formData.has("console_key")) event.formData.set("console_key", held());
});

// Forms with files ask for the password where there is no key.
if (held()) {
  for (const field of document.querySelectorAll("[data-without-key]")) field.remove();
}
