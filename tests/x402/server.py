"""The official server of x402 for FastAPI sells calls, with its facilitator in this process.

Usage: python server.py CHAIN_URL PRIVATE_KEY_OF_THE_FACILITATOR PAYEE
Prints its address in a line, and sells GET /ok for 0.002 USDC.
"""

import socket
import sys

import uvicorn
from fastapi import FastAPI
from x402 import x402Facilitator, x402ResourceServer
from x402.http.middleware.fastapi import payment_middleware
from x402.http.types import PaymentOption, RouteConfig
from x402.mechanisms.evm import FacilitatorWeb3Signer
from x402.mechanisms.evm.exact import ExactEvmServerScheme, register_exact_evm_facilitator

chain, key, payee = sys.argv[1:4]
network = "eip155:84532"

signer = FacilitatorWeb3Signer(private_key=key, rpc_url=chain)
facilitator = x402Facilitator()
register_exact_evm_facilitator(facilitator, signer, networks=network)
server = x402ResourceServer(facilitator)
server.register(network, ExactEvmServerScheme())

option = PaymentOption(scheme="exact", pay_to=payee, price="$0.002", network=network)
app = FastAPI()
app.middleware("http")(payment_middleware({"GET /ok": RouteConfig(accepts=option)}, server))
sold = 0


@app.get("/ok")
async def ok() -> dict[str, int]:
    global sold
    sold += 1
    return {"sold": sold}


listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
