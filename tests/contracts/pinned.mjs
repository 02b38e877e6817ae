// Ends badly when the lockfile does not know what a package for this machine must contain: npm would install it
// unseen, and the local chain is a program that runs here.
//
// Usage: node pinned.mjs [PLATFORM ARCHITECTURE]

import { readFileSync } from "node:fs";

const [platform = process.platform, architecture = process.arch] = process.argv.slice(2);
const { packages } = JSON.parse(readFileSync(new URL("package-lock.json", import.meta.url), "utf8"));

const fits = (list, own) => !list || list.includes(own);
const unknown = Object.entries(packages).filter(
  ([name, { integrity, os, cpu }]) => name && !integrity && fits(os, platform) && fits(cpu, architecture),
);
if (unknown.length > 0) {
  console.error(
    `package-lock.json has no checksum for ${unknown.map(([name]) => name.replace("node_modules/", "")).join(", ")}, ` +
      "so nothing was installed. Put an anvil that you trust on the PATH, or add the checksum to package-lock.json.",
  );
  process.exit(1);
}
