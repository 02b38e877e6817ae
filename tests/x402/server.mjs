// The official server of x402 for express sells calls, with its facilitator in this process.
//
// Usage: node server.mjs CHAIN_URL PRIVATE_KEY_OF_THE_FACILITATOR PAYEE
// Prints its address in a line, and sells GET /ok for 0.002 USDC each.

import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme as ExactFacilitator } from "@x402/evm/exact/facilitator";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";

const [chain, key, payTo] = process.argv.slice(2);
const network = "eip155:84532";

const account = privateKeyToAccount(key);
const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(chain) }).extend(publicActions);
const signer = toFacilitatorEvmSigner({ ...wallet, address: account.address });
const facilitator = new x402Facilitator().register(network, new ExactFacilitator(signer));
const server = new x402ResourceServer(facilitator).register(network, new ExactEvmScheme());

const accepts = { scheme: "exact", price: "$0.002", network, payTo };
const app = express();
app.use(paymentMiddleware({ "GET /ok": { accepts } }, server));
let sold = 0;
app.get("/ok", (_, answer) => answer.json({ sold: (sold += 1) }));

const listening = app.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listening.address().port}`));
