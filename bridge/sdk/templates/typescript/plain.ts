{% include "tls.ts" %}
const call = {{ call }};
const answer = await fetch({{ address|lit }}, {
  method: "POST",
  headers: {
    Authorization: `Bearer ${process.env.CONSUMER_SECRET}`,
    "Content-Type": "application/json",
  },
  body: JSON.stringify(call),
});
console.log(answer.status, answer.headers.get("x-farthing-charged"), "USDC charged");
console.log(await answer.text());
