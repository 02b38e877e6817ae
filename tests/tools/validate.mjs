// Judges generated GraphQL requests with graphql-js, the reference implementation.
//
//   node validate.mjs SCHEMA.graphql < requests.jsonl
//
// Every line of standard input is {"operation", "query", "variables"}. A request is right when it parses, has one
// operation, breaks none of the specification's rules under the schema, and its variables are declared and can be
// coerced to their types. Prints {"requests", "operations", "bytes_max", "failed", "failures"}, where "operations"
// are those that occurred and "failures" the first ones, and ends with 1 when anything failed.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Kind, buildASTSchema, getVariableValues, parse, validate } from "graphql";

const FAILURES_SHOWN = 20;

/** A schema as servers publish it: federation's directives are declared nowhere, and extensions may stand alone. */
function readSchema(path) {
  const document = parse(readFileSync(path, "utf8"), { noLocation: true });
  const names = document.definitions.filter(({ kind }) => kind === Kind.OBJECT_TYPE_DEFINITION).map(({ name }) => name.value);
  const defined = new Set(names);
  const definitions = document.definitions.map((node) => {
    if (node.kind !== Kind.OBJECT_TYPE_EXTENSION || defined.has(node.name.value)) return node;
    defined.add(node.name.value);
    return { ...node, kind: Kind.OBJECT_TYPE_DEFINITION };
  });
  return buildASTSchema({ ...document, definitions }, { assumeValidSDL: true });
}

/** Everything wrong with a request; nothing when it is right. */
function complaints(schema, { query, variables }) {
  let document;
  try {
    document = parse(query);
  } catch (error) {
    return [error.message];
  }
  const operations = document.definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION);
  if (operations.length !== 1) return [`${operations.length} operations, expected one`];
  const broken = validate(schema, document, undefined, { maxErrors: 5 });
  if (broken.length > 0) return broken.map(({ message }) => message);
  const definitions = operations[0].variableDefinitions ?? [];
  const declared = new Set(definitions.map(({ variable }) => variable.name.value));
  const undeclared = Object.keys(variables).filter((name) => !declared.has(name));
  if (undeclared.length > 0) return [`variables that the query does not declare: ${undeclared.join(", ")}`];
  return (getVariableValues(schema, definitions, variables).errors ?? []).map(({ message }) => message);
}

const schema = readSchema(process.argv[2]);
const operations = new Set();
const summary = { requests: 0, operations: 0, bytes_max: 0, failed: 0, failures: [] };
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const errors = complaints(schema, request);
  operations.add(request.operation);
  summary.requests += 1;
  summary.operations = operations.size;
  summary.bytes_max = Math.max(summary.bytes_max, Buffer.byteLength(request.query));
  if (errors.length === 0) continue;
  summary.failed += 1;
  if (summary.failures.length < FAILURES_SHOWN) summary.failures.push({ ...request, errors });
}
console.log(JSON.stringify(summary, null, 2));
process.exitCode = summary.failed > 0 ? 1 : 0;
