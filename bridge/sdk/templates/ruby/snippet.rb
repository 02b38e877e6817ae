client = {{ package.pascal }}::Client.new # CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
answer = client.{{ operation.name }}({% for a in arguments %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.pascal }}::{{ a.choice_type }}::{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %})
{% else %}
answer = client.call("{{ operation.method }}", {{ operation.path|lit }}, { {%- for t in texts %}{{ t.name|lit }} => {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor -%} }{% if body is not none %}, body: {% if body_is_json %}JSON.parse({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %})
{% endif %}
puts answer.value.inspect, answer.charged
