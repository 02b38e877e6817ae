"""An official client of x402 in Python buys one call with its default settings.

Usage: python client.py LIBRARY URL PRIVATE_KEY [BODY]
LIBRARY is httpx or requests.
Prints one line of JSON: the status, the body, and the word on the payment.
"""

import asyncio
import json
import sys

from eth_account import Account
from x402 import x402Client, x402ClientSync
from x402.http import decode_payment_response_header
from x402.mechanisms.evm.exact import ExactEvmScheme

NETWORK = "eip155:84532"
HEADERS = {"content-type": "application/json"}


async def buy_with_httpx(url: str, scheme: ExactEvmScheme, body: str | None):
    from x402.http.clients.httpx import wrapHttpxWithPayment

    client = x402Client()
    client.register(NETWORK, scheme)
    async with wrapHttpxWithPayment(client, trust_env=False) as http:
        return await (http.get(url) if body is None else http.post(url, content=body, headers=HEADERS))


def buy_with_requests(url: str, scheme: ExactEvmScheme, body: str | None):
    from requests import Session
    from x402.http.clients.requests import wrapRequestsWithPayment

    client = x402ClientSync()
    client.register(NETWORK, scheme)
    with wrapRequestsWithPayment(Session(), client) as http:
        http.trust_env = False
        return http.get(url) if body is None else http.post(url, data=body, headers=HEADERS)


def buy(library: str, url: str, key: str, body: str | None = None) -> None:
    scheme = ExactEvmScheme(signer=Account.from_key(key))
    if library == "httpx":
        answer = asyncio.run(buy_with_httpx(url, scheme, body))
    else:
        answer = buy_with_requests(url, scheme, body)
    told = answer.headers.get("payment-response")
    payment = decode_payment_response_header(told).model_dump() if told else None
    print(json.dumps({"status": answer.status_code, "body": answer.text, "payment": payment}))


buy(*sys.argv[1:])
