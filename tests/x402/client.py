"""An official client of x402 (Python, httpx) buys one call with its default settings.

Usage: python client.py URL PRIVATE_KEY [BODY]
Prints one line of JSON: the status, the body, and the word on the payment.
"""

import asyncio
import json
import sys

from eth_account import Account
from x402 import x402Client
from x402.http import decode_payment_response_header
from x402.http.clients.httpx import wrapHttpxWithPayment
from x402.mechanisms.evm.exact import ExactEvmScheme


async def buy(url: str, key: str, body: str | None = None) -> None:
    client = x402Client()
    client.register("eip155:84532", ExactEvmScheme(signer=Account.from_key(key)))
    async with wrapHttpxWithPayment(client, trust_env=False) as http:
        if body is None:
            answer = await http.get(url)
        else:
            answer = await http.post(url, content=body, headers={"content-type": "application/json"})
    told = answer.headers.get("payment-response")
    payment = decode_payment_response_header(told).model_dump() if told else None
    print(json.dumps({"status": answer.status_code, "body": answer.text, "payment": payment}))


asyncio.run(buy(*sys.argv[1:]))
