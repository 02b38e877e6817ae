{% if upload %}
import { readFile } from "node:fs/promises";
{% endif %}
import { Client{{ ", Upload" if upload and upload.kind == "form" }} } from {{ package.name|json }};

const client = new Client();
{% if typed %}
const answer = await client.{{ operation.name }}({% set list = arguments %}{% include "arguments" %}{% if upload %}{% if operation.params %}{{ "{}" if not arguments }}, {% endif %}{% if upload.kind == "form" %}{% set list = upload.holds %}{% include "arguments" %}{{ "{}" if not list }}{% else %}await readFile({{ upload.text|lit }}){% endif %}{% endif %});
{% else %}
const answer = await client.call("{{ operation.method }}", {{ operation.path|lit }}{% if texts or body is not none %}, {
{% for t in texts %}
  {{ t.name|lit }}: {{ t.text|lit }},
{% endfor %}
}{% endif %}{% if body is not none %}, {% if body_is_json %}JSON.parse({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %});
{% endif %}
console.log(answer.value, answer.charged);
