{% macro value(v) %}{% if v.kind == "text" %}{{ v.text|lit }}{% elif v.kind == "number" %}{{ v.number }}{% elif v.kind == "boolean" %}{{ "true" if v.boolean else "false" }}{% elif v.kind == "choice" %}new {{ package.pascal }}\{{ v.choice_type }}({{ package.pascal }}\{{ v.choice_type }}::{{ v.choice }}){% elif v.kind == "list" %}[{% for item in v.holds %}{{ value(item) }}{{ ", " if not loop.last }}{% endfor %}]{% elif v.kind == "form" %}new {{ package.pascal }}\{{ v.type.name }}({% for m in v.holds %}{{ m.name }}: {{ value(m) }}{{ ", " if not loop.last }}{% endfor %}){% else %}{% set content %}file_get_contents({{ v.text|lit }}){% endset %}{% if v.kind == "upload" %}new {{ package.pascal }}\Upload({{ content }}, {{ v.text|lit }}){% else %}{{ content }}{% endif %}{% endif %}{% endmacro %}
$client = new {{ package.pascal }}\Client(); // CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
$answer = $client->{{ operation.name }}({% for a in arguments %}{{ a.name }}: {{ value(a) }}{{ ", " if not loop.last or upload }}{% endfor %}{% if upload %}body: {{ value(upload) }}{% endif %});
{% else %}
$answer = $client->call('{{ operation.method }}', {{ operation.path|lit }}, [{% for t in texts %}{{ t.name|lit }} => {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor %}]{% if body is not none %}, {% if body_is_json %}json_decode({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %});
{% endif %}
var_dump($answer->value, $answer->charged);
