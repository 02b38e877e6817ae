// Runs all suites of this workspace, two side by side, and ends badly when one of them does.
//
// Usage: cargo test --workspace --no-run --message-format=json-render-diagnostics | node tests/suites.mjs [COMMAND …]
//
// 1. Cargo tells which programs it has built; each is a suite. So is each COMMAND, for what no program does by itself; without
//    programs the input is empty.
// 2. One lane takes the suites that compute, at a low priority, the other one those that wait. A lane that has no more
//    of its own kind takes the other's.
// 3. What a suite prints is shown whole when it has ended. Suites that failed are named again at the end.
//
// Every suite runs to its end, whatever became of the others, and no longer than SUITE_SECONDS.

import { execFileSync, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { text } from "node:stream/consumers";

// Compilers, parsers and simulations: they keep every core busy, and nothing in them has to be quick. The one that takes
// longest begins first, here and below.
const COMPUTE = ["sdk", "tools", "simulation", "known_and_broken", "ledger"];
// Whole nodes, which wait for blocks and for each other. What is not named here comes last.
const WAIT = ["paid_calls", "hostile", "browser", "console", "nat", "chain", "contracts", "x402", "bridge", "first_steps"];

// Far longer than any suite takes on a slow machine, so that only one that hangs runs into it.
const seconds = Number(process.env.SUITE_SECONDS ?? 1800);

// A suite: its name, what to start, the folder to start it in, and its place in the order of its lane.
function built(line) {
  const { reason, profile, executable, manifest_path, target } = JSON.parse(line);
  if (reason !== "compiler-artifact" || !profile.test || !executable) return [];
  const name = target.kind.includes("test") ? target.name : "";
  const place = COMPUTE.indexOf(name);
  const computes = place >= 0;
  const order = [place, WAIT.indexOf(name)].find((index) => index >= 0) ?? WAIT.length;
  const folder = dirname(manifest_path);
  return [{ name: relative(".", target.src_path), argv: [executable], folder, computes, order }];
}

function commanded(command) {
  return { name: command, argv: ["bash", "-c", command], folder: ".", computes: true, order: COMPUTE.length };
}

// The compiler of this repository is found in every folder. Only here does rustup know which one that is.
const compiler = join(execFileSync("rustc", ["--print", "sysroot"], { encoding: "utf8" }).trim(), "bin");
const env = { ...process.env, PATH: [compiler, process.env.PATH].join(delimiter) };

const running = new Set();

function kill(child) {
  try {
    // With everything that it started.
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

// Runs one suite. What became of it: nothing when it passed.
function run(suite, output) {
  const argv = suite.computes ? ["nice", "-n", "5", ...suite.argv] : suite.argv;
  return new Promise((ended) => {
    const stdio = ["ignore", output, output];
    const child = spawn(argv[0], argv.slice(1), { cwd: suite.folder, env, stdio, detached: true });
    running.add(child);
    let hangs = false;
    const deadline = setTimeout(() => {
      hangs = true;
      kill(child);
    }, seconds * 1000);
    const end = (why) => {
      clearTimeout(deadline);
      running.delete(child);
      ended(why);
    };
    child.on("error", (error) => end(error.message));
    child.on("exit", (code, signal) => {
      if (hangs) end(`was ended after ${seconds} s`);
      else end(code === 0 ? undefined : `ended with ${signal ?? code}`);
    });
  });
}

// The names of the tests that failed, as the harness lists them in its last lines.
function failures(said) {
  const from = said.lastIndexOf("\nfailures:\n");
  return from < 0 ? "" : said.slice(from).split("\n\n")[0];
}

const secondsSince = (start) => Math.round((Date.now() - start) / 1000);

const began = Date.now();
const folder = mkdtempSync(join(tmpdir(), "farthing-suites-"));
const failed = [];

// One lane: runs what is left of its own list, then what is left of the other one.
async function runAll(own, others, file) {
  for (;;) {
    const suite = own.shift() ?? others.shift();
    if (!suite) return;
    const start = Date.now();
    console.log(`     Running ${suite.name}`);
    const output = openSync(file, "w");
    const why = await run(suite, output);
    closeSync(output);
    const said = readFileSync(file, "utf8");
    // What a suite left behind goes on writing into its own file, not into the next one's.
    rmSync(file);
    console.log(`\n     ${why ? "FAILED" : "Passed"} ${suite.name}, ${secondsSince(start)} s\n${said}`);
    if (why) failed.push(`${suite.name} ${why}${failures(said)}`);
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    running.forEach(kill);
    rmSync(folder, { recursive: true });
    process.exit(128 + constants.signals[signal]);
  });
}

// Cargo advises to leave out lines that are no messages.
const messages = (await text(process.stdin)).split("\n").filter((line) => line.startsWith("{"));
const suites = [...messages.flatMap(built), ...process.argv.slice(2).map(commanded)].sort((a, b) => a.order - b.order);
const [compute, wait] = [true, false].map((computes) => suites.filter((suite) => suite.computes === computes));
await Promise.all([runAll(compute, wait, join(folder, "compute")), runAll(wait, compute, join(folder, "wait"))]);
rmSync(folder, { recursive: true });

for (const one of failed) console.log(`\nerror: ${one}`);
if (suites.length === 0) console.log("\nerror: cargo told of no suite, so nothing was tested");
console.log(`\n     ${suites.length - failed.length} of ${suites.length} suites passed, ${secondsSince(began)} s`);
process.exitCode = failed.length > 0 || suites.length === 0 ? 1 : 0;
