// An official client of x402 buys one call with its default settings.
//
// Usage: node client.mjs PACKAGE URL PRIVATE_KEY [BODY]
// PACKAGE is @x402/fetch or @x402/axios (version 2), or x402-fetch or x402-axios (version 1).
// Prints one line of JSON: the status, the body, and the word on the payment.

import axios from "axios";
import { privateKeyToAccount } from "viem/accounts";

const [name, url, key, body] = process.argv.slice(2);
const headers = { "content-type": "application/json" };

// The clients by their packages: each buys, and says how its word on the payment is read.
const clients = {
  async "@x402/fetch"() {
    const { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } = await import("@x402/fetch");
    const buy = wrapFetchWithPaymentFromConfig(fetch, await schemes());
    return told("PAYMENT-RESPONSE", decodePaymentResponseHeader, await byFetch(buy));
  },
  async "@x402/axios"() {
    const { decodePaymentResponseHeader, wrapAxiosWithPaymentFromConfig } = await import("@x402/axios");
    const buyer = wrapAxiosWithPaymentFromConfig(plainAxios(), await schemes());
    return told("PAYMENT-RESPONSE", decodePaymentResponseHeader, await byAxios(buyer));
  },
  async "x402-fetch"() {
    const { createSigner, decodeXPaymentResponse, wrapFetchWithPayment } = await import("x402-fetch");
    const buy = wrapFetchWithPayment(fetch, await createSigner("base-sepolia", key));
    return told("X-PAYMENT-RESPONSE", decodeXPaymentResponse, await byFetch(buy));
  },
  async "x402-axios"() {
    const { createSigner, decodeXPaymentResponse, withPaymentInterceptor } = await import("x402-axios");
    const buyer = withPaymentInterceptor(plainAxios(), await createSigner("base-sepolia", key));
    return told("X-PAYMENT-RESPONSE", decodeXPaymentResponse, await byAxios(buyer));
  },
};

async function schemes() {
  const { ExactEvmScheme } = await import("@x402/evm");
  return { schemes: [{ network: "eip155:84532", client: new ExactEvmScheme(privateKeyToAccount(key)) }] };
}

// A proxy of the environment does not know this machine's addresses.
function plainAxios() {
  return axios.create({ proxy: false });
}

async function byFetch(buy) {
  const answer = await buy(url, body === undefined ? { method: "GET" } : { method: "POST", body, headers });
  return { answer, text: await answer.text() };
}

async function byAxios(buyer) {
  const answer = await (body === undefined ? buyer.get(url) : buyer.post(url, body, { headers }));
  return { answer, text: JSON.stringify(answer.data) };
}

function told(header, decode, { answer, text }) {
  const payment = answer.headers.get(header);
  return { status: answer.status, body: text, payment: payment ? decode(payment) : null };
}

console.log(JSON.stringify(await clients[name]()));
// Some of their libraries keep the program alive.
process.exit(0);
