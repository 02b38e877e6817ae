{% macro value(v) %}{% if v.kind == "text" %}{{ v.text|lit }}{% elif v.kind == "number" %}{% if v.type.width == "u64" %}"{{ v.number }}".toBigInteger(){% else %}{{ v.number }}{% endif %}{% elif v.kind == "boolean" %}{{ "true" if v.boolean else "false" }}{% elif v.kind == "choice" %}{{ v.choice_type }}.{{ v.choice }}{% elif v.kind == "list" %}listOf({% for item in v.holds %}{{ value(item) }}{{ ", " if not loop.last }}{% endfor %}){% elif v.kind == "form" %}{{ v.type.name }}({% for m in v.holds %}{{ m.name }} = {{ value(m) }}{{ ", " if not loop.last }}{% endfor %}){% else %}{% set content %}java.io.File({{ v.text|lit }}).readBytes(){% endset %}{% if v.kind == "upload" %}Upload({{ content }}, {{ v.text|lit }}){% else %}{{ content }}{% endif %}{% endif %}{% endmacro %}
val client = Client() // CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
val answer = client.{{ operation.name }}({% for a in arguments %}{{ a.name }} = {{ value(a) }}{{ ", " if not loop.last or upload }}{% endfor %}{% if upload %}body = {{ value(upload) }}{% endif %})
{% else %}
val answer = client.call("{{ operation.method }}", {{ operation.path|lit }}, mapOf({% for t in texts %}{{ t.name|lit }} to {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor %}){% if body is not none %}, body = {% if body_is_json %}Json.read({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% endif %})
{% endif %}
println("${answer.value} for ${answer.charged} USDC")
