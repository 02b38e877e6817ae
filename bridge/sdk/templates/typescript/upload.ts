{% include "tls.ts" %}
import { readFile } from "node:fs/promises";

{% if file %}
const body = await readFile({{ file.name|lit }});
{% else %}
const body = new FormData();
{% for part in parts %}
{% if part.is_file %}
body.append({{ part.name|lit }}, new Blob([await readFile({{ part.value|lit }})]), {{ part.value|lit }});
{% else %}
body.append({{ part.name|lit }}, {{ part.value|lit }});
{% endif %}
{% endfor %}
{% endif %}
const answer = await fetch({{ address|lit }}, {
  method: {{ method|lit }},
  headers: {
    Authorization: `Bearer ${process.env.CONSUMER_SECRET}`,
{% if file %}
    "Content-Type": {{ file.content_type|lit }},
{% endif %}
{% for header in headers %}
    {{ header.name|lit }}: {{ header.value|lit }},
{% endfor %}
  },
  body,
});
console.log(answer.status, answer.headers.get("x-farthing-charged"), "USDC charged");
console.log(await answer.text());
