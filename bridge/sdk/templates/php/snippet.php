$client = new {{ package.pascal }}\Client(); // CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
$answer = $client->{{ operation.name }}({% for a in arguments %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.pascal }}\{{ a.choice_type }}::{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %});
{% else %}
$answer = $client->call('{{ operation.method }}', {{ operation.path|lit }}, [{% for t in texts %}{{ t.name|lit }} => {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor %}]{% if body is not none %}, {% if body_is_json %}json_decode({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %});
{% endif %}
var_dump($answer->value, $answer->charged);
