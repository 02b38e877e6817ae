// An official client of x402 buys one call with its default settings.
//
// Usage: node client.mjs VERSION URL PRIVATE_KEY [BODY]
// Prints one line of JSON: the status, the body, and the word on the payment.

import { privateKeyToAccount } from "viem/accounts";

const [version, url, key, body] = process.argv.slice(2);

async function client() {
  if (version === "1") {
    const { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } = await import("x402-fetch");
    const buy = wrapFetchWithPayment(fetch, await createSigner("base-sepolia", key));
    return { buy, header: "X-PAYMENT-RESPONSE", decode: decodeXPaymentResponse };
  }
  const { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } = await import("@x402/fetch");
  const { ExactEvmScheme } = await import("@x402/evm");
  const schemes = [{ network: "eip155:84532", client: new ExactEvmScheme(privateKeyToAccount(key)) }];
  const buy = wrapFetchWithPaymentFromConfig(fetch, { schemes });
  return { buy, header: "PAYMENT-RESPONSE", decode: decodePaymentResponseHeader };
}

const { buy, header, decode } = await client();
const posted = { method: "POST", body, headers: { "content-type": "application/json" } };
const answer = await buy(url, body === undefined ? { method: "GET" } : posted);
const told = answer.headers.get(header);
console.log(
  JSON.stringify({ status: answer.status, body: await answer.text(), payment: told ? decode(told) : null }),
);
// Some of their libraries keep the program alive.
process.exit(0);
