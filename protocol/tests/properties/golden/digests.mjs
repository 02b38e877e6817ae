// Computes `files/digests.txt` from the specifications alone: EIP-712, RFC 8949 (CBOR) and docs/wire.md.
// Shares no code with the crate. Addresses are given because deriving them needs a curve; `identity.rs`
// tests that.
//
//   cd tests/contracts && npm ci          (for js-sha3)
//   node protocol/tests/properties/golden/digests.mjs > protocol/tests/properties/golden/files/digests.txt
import { createRequire } from "node:module";
const { keccak256 } = createRequire(new URL("../../../../tests/contracts/", import.meta.url))("js-sha3");

const hash = (...parts) => Buffer.from(keccak256.arrayBuffer(Buffer.concat(parts.map((p) => Buffer.from(p)))));
const bytes = (byte, count) => Buffer.alloc(count, byte);
const uint = (n) => Buffer.from(BigInt(n).toString(16).padStart(64, "0"), "hex");

// EIP-712: members are encoded by the type named in the type string itself.
const encodeMember = {
  string: (v) => hash(v),
  address: (v) => Buffer.concat([bytes(0, 12), v]),
  bytes32: (v) => v,
  bytes16: (v) => Buffer.concat([v, bytes(0, 16)]),
};
function hashStruct(type, ...values) {
  const members = type.slice(type.indexOf("(") + 1, -1).split(",").map((m) => m.split(" ")[0]);
  if (members.length !== values.length) throw new Error(type);
  return hash(hash(type), ...members.map((m, i) => (encodeMember[m] ?? uint)(values[i])));
}
const typed = (separator, struct) => hash([0x19, 0x01], separator, struct);

// CBOR, as far as requests and responses need it: integers, texts, byte strings, arrays, maps of texts.
function head(major, n) {
  if (n < 24) return Buffer.from([(major << 5) | n]);
  if (n < 256) return Buffer.from([(major << 5) | 24, n]);
  return Buffer.from([(major << 5) | 25, n >> 8, n & 255]);
}
function cbor(v) {
  if (typeof v === "number") return head(0, v);
  if (Buffer.isBuffer(v)) return Buffer.concat([head(2, v.length), v]);
  if (typeof v === "string") return Buffer.concat([head(3, Buffer.byteLength(v)), Buffer.from(v)]);
  if (Array.isArray(v)) return Buffer.concat([head(4, v.length), ...v.map(cbor)]);
  const entries = Object.entries(v).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return Buffer.concat([head(5, entries.length), ...entries.flat().map(cbor)]);
}

const payer = Buffer.from("19e7e376e7c213b7e7e7e46cc70a5dd086daff2a", "hex");
const payee = Buffer.from("1563915e194d8cfba1943570603f7606a3115508", "hex");
const separator = hashStruct(
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
  "Farthing PayChannels", "1", 31337, bytes(0xc0, 20),
);
const channelId = typed(separator, hashStruct(
  "Channel(address payer,address payee,address token,address signer,uint40 closeDelay,bytes32 salt)",
  payer, payee, bytes(0x70, 20), payer, 86400, bytes(0, 32),
));
const voucher = typed(separator, hashStruct("Voucher(bytes32 channelId,uint128 cumulative)", channelId, 6000));

// A UUID of version 8 (RFC 9562): 122 bits of a hash over the owner and its nonce.
const service = hash("farthing service id\0", payee, bytes(0x5e, 16)).subarray(0, 16);
service[6] = 0x80 | (service[6] & 0x0f);
service[8] = 0x80 | (service[8] & 0x3f);

// service, method (2 is POST), path, params, headers, length of the body
const body = '{"limit":3}';
const request = hash("farthing request\0", cbor([
  service, 2, "/events/{id}", { id: "us7000abcd", "größe": "≥ 6" },
  { "content-type": "application/json" }, body.length,
]), hash(body));
const response = hash(
  "farthing response\0",
  cbor([200, { "content-type": "application/json", etag: '"1"' }]),
  hash('{"id":"us7000abcd","magnitude":"6.1"}'),
);
const receipt = typed(separator, hashStruct(
  "Receipt(bytes32 channelId,bytes16 callId,bytes32 requestHash,bytes32 responseHash," +
    "uint8 outcome,uint128 charged,uint128 spentTotal,uint64 time)",
  channelId, bytes(0xca, 16), request, response, 0, 2000, 4000, 1767323045,
));

const closeConsent = typed(separator, hashStruct(
  "Close(bytes32 channelId,uint128 amount,uint128 deposited,uint24 round,uint40 deadline)",
  channelId, 4000, 1000000, 3, 1767409445,
));
const closeRequest = typed(separator, hashStruct(
  "RequestClose(bytes32 channelId,uint24 round,uint40 deadline)", channelId, 3, 1767409445,
));

const all = { domain_separator: separator, channel_id: channelId, voucher_digest: voucher,
  close_consent_digest: closeConsent, close_request_digest: closeRequest,
  request_hash: request, response_hash: response, receipt_digest: receipt };
for (const [name, digest] of Object.entries(all)) console.log(name, digest.toString("hex"));
