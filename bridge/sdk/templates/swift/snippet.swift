let client = try Client() // CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
let answer = try await client.{{ operation.name }}({% for a in arguments %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last }}{% endfor %})
{% else %}
let answer = try await client.call("{{ operation.method }}", {{ operation.path|lit }}, [{% for t in texts %}{{ t.name|lit }}: {{ t.text|lit }}{{ ", " if not loop.last }}{% endfor %}{{ ":" if not texts }}]{% if body is not none %}, body: {% if body_is_json %}JSONDecoder().decode(Json.self, from: Data({{ body|lit }}.utf8)){% else %}.text({{ body|lit }}){% endif %}{% endif %})
{% endif %}
print(answer.value, answer.charged)
