#!/usr/bin/env node
// The pinned compiler of tests/contracts as forge calls a compiler: `--version`, or `--standard-json` with the input
// on standard input. Forge brings none of its own and would look for one in the network.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const solc = createRequire(import.meta.url)("solc");

if (process.argv.includes("--version")) {
  // Forge knows only the names of native builds.
  const version = solc.version().replace("Emscripten.clang", "Linux.g++");
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${version}`);
} else {
  process.stdout.write(solc.compile(readFileSync(0, "utf8")));
}
