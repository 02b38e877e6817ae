val client = Client() // CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
val answer = client.{{ operation.name }}({% for a in arguments %}{{ a.name }} = {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %})
{% else %}
val answer = client.call("{{ operation.method }}", {{ operation.path|lit }}, mapOf({% for t in texts %}{{ t.name|lit }} to {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor %}){% if body is not none %}, body = {% if body_is_json %}Json.read({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %})
{% endif %}
println("${answer.value} for ${answer.charged} USDC")
