import { Client } from {{ package.name|json }};

const client = new Client();
{% if typed %}
const answer = await client.{{ operation.name }}({% set list = arguments %}{% include "arguments" %});
{% else %}
const answer = await client.call("{{ operation.method }}", {{ operation.path|lit }}{% if texts or body is not none %}, {
{% for t in texts %}
  {{ t.name|lit }}: {{ t.text|lit }},
{% endfor %}
}{% endif %}{% if body is not none %}, {% if body_is_json %}JSON.parse({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %});
{% endif %}
console.log(answer.value, answer.charged);
