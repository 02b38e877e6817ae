// Compiles Farthing's contracts with the pinned solc and writes one artifact beside each source.
//
//   node build.mjs           compile and write <Name>.json beside <Name>.sol
//   node build.mjs --check   compile and compare with what is committed; exit 1 when it differs
//
// Everything that decides the bytecode is fixed here, because the bytecode decides the contract's
// address on every chain: compiler version, optimizer, EVM version, and no metadata hash, so that a
// changed comment changes nothing.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const contractsDir = join(here, "../../protocol/contracts");
const fixturesDir = join(here, "fixtures");

// What ships, and what only the tests deploy.
const contracts = [
  { name: "PayChannels", dir: contractsDir },
  { name: "TestUsdc", dir: contractsDir },
  { name: "HostileToken", dir: fixturesDir },
  { name: "TestAccount", dir: fixturesDir },
  { name: "Proxy", dir: fixturesDir },
  { name: "Flood", dir: fixturesDir },
  { name: "Dust", dir: fixturesDir },
];

const settings = {
  optimizer: { enabled: true, runs: 10_000 },
  evmVersion: "cancun",
  viaIR: true,
  metadata: { bytecodeHash: "none", appendCBOR: false },
};

function loadCompiler() {
  const require = createRequire(import.meta.url);
  const pinned = require("./package.json").devDependencies.solc;
  let solc;
  try {
    solc = require("solc");
  } catch {
    throw new Error("solc is not installed: run `npm ci --prefix tests/contracts`");
  }
  if (!solc.version().startsWith(`${pinned}+`)) {
    throw new Error(`solc ${solc.version()} is installed, ${pinned} is pinned: run \`npm ci --prefix tests/contracts\``);
  }
  return solc;
}

function compile(solc) {
  const sources = Object.fromEntries(
    contracts.map(({ name, dir }) => [`${name}.sol`, { content: readFileSync(join(dir, `${name}.sol`), "utf8") }]),
  );
  const outputSelection = { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } };
  const input = { language: "Solidity", sources, settings: { ...settings, outputSelection } };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const complaints = (output.errors ?? []).map((error) => error.formattedMessage);
  if (complaints.length > 0) throw new Error(`solc reports problems:\n${complaints.join("\n")}`);
  return output.contracts;
}

function artifact(solc, compiled, name) {
  const { abi, evm } = compiled[`${name}.sol`][name];
  const fields = {
    contractName: name,
    solc: solc.version(),
    settings,
    abi,
    bytecode: `0x${evm.bytecode.object}`,
    deployedBytecode: `0x${evm.deployedBytecode.object}`,
  };
  return `${JSON.stringify(fields, null, 2)}\n`;
}

function main() {
  const check = process.argv.includes("--check");
  const solc = loadCompiler();
  const compiled = compile(solc);
  const stale = [];
  for (const { name, dir } of contracts) {
    const path = join(dir, `${name}.json`);
    const text = artifact(solc, compiled, name);
    if (!check) writeFileSync(path, text);
    else if (readFileSync(path, "utf8") !== text) stale.push(`${name}.json`);
    const size = compiled[`${name}.sol`][name].evm.deployedBytecode.object.length / 2;
    console.log(`${name}: ${size} bytes of code`);
  }
  if (stale.length > 0) {
    throw new Error(`${stale.join(", ")} do not match their source: run \`npm run build --prefix tests/contracts\``);
  }
}

try {
  main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
