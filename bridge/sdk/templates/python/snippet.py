{% if body_is_json and body is not none %}
import json

{% endif %}
import {{ package.snake }} as sdk

client = sdk.Client()
{% if typed %}
answer = client.{{ operation.name }}({% for a in arguments %}{{ a.name }}={% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "True" if a.boolean else "False" }}{% else %}sdk.{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %})
{% else %}
answer = client.call(
    "{{ operation.method }}",
    {{ operation.path|lit }},
{% if texts %}
    {
{% for t in texts %}
        {{ t.name|lit }}: {{ t.text|lit }},
{% endfor %}
    },
{% endif %}
{% if body is not none %}
    body={% if body_is_json %}json.loads({{ body|lit }}){% else %}{{ body|lit }}{% endif %},
{% endif %}
)
{% endif %}
print(answer.value, answer.charged)
