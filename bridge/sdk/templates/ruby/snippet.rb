{% macro value(v) %}{% if v.kind == "text" %}{{ v.text|lit }}{% elif v.kind == "number" %}{{ v.number }}{% elif v.kind == "boolean" %}{{ "true" if v.boolean else "false" }}{% elif v.kind == "choice" %}{{ package.pascal }}::{{ v.choice_type }}::{{ v.choice }}{% elif v.kind == "list" %}[{% for item in v.holds %}{{ value(item) }}{{ ", " if not loop.last }}{% endfor %}]{% elif v.kind == "form" %}{{ package.pascal }}::{{ v.type.name }}.new({% for m in v.holds %}{{ m.name }}: {{ value(m) }}{{ ", " if not loop.last }}{% endfor %}){% else %}{% set content %}File.binread({{ v.text|lit }}){% endset %}{% if v.kind == "upload" %}{{ package.pascal }}::Upload.new({{ content }}, name: {{ v.text|lit }}){% else %}{{ content }}{% endif %}{% endif %}{% endmacro %}
client = {{ package.pascal }}::Client.new # CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
answer = client.{{ operation.name }}({% for a in arguments %}{{ a.name }}: {{ value(a) }}{{ ", " if not loop.last or upload }}{% endfor %}{% if upload %}body: {{ value(upload) }}{% endif %})
{% else %}
answer = client.call("{{ operation.method }}", {{ operation.path|lit }}, { {%- for t in texts %}{{ t.name|lit }} => {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor -%} }{% if body is not none %}, body: {% if body_is_json %}JSON.parse({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %})
{% endif %}
puts answer.value.inspect, answer.charged
