{% macro value(v) %}{% if v.kind == "text" %}{{ v.text|lit }}{% elif v.kind == "number" %}{{ v.number }}{% elif v.kind == "boolean" %}{{ "true" if v.boolean else "false" }}{% elif v.kind == "choice" %}{{ v.choice_type }}.{{ v.choice }}{% elif v.kind == "list" %}new {{ v.type.text }} { {% for item in v.holds %}{{ value(item) }}{{ ", " if not loop.last }}{% endfor %} }{% elif v.kind == "form" %}new {{ v.type.name }} { {% for m in v.holds %}{{ m.name }} = {{ value(m) }}{{ ", " if not loop.last }}{% endfor %} }{% else %}{% set content %}System.IO.File.ReadAllBytes({{ v.text|lit }}){% endset %}{% if v.kind == "upload" %}new Upload({{ content }}, {{ v.text|lit }}){% else %}{{ content }}{% endif %}{% endif %}{% endmacro %}
var client = new Client(); // CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
var answer = await client.{{ operation.name }}({% for a in arguments %}{{ a.name }}: {{ value(a) }}{{ ", " if not loop.last or upload }}{% endfor %}{% if upload %}body: {{ value(upload) }}{% endif %});
{% else %}
var answer = await client.Call("{{ operation.method }}", {{ operation.path|lit }}, new Dictionary<string, string> { {%- for t in texts %} { {{- t.name|lit }}, {{ t.text|lit }} }{{ "," if not loop.last else "" }}{% endfor %} }{% if body is not none %}, {% if body_is_json %}JsonDocument.Parse({{ body|lit }}).RootElement{% else %}{{ body|lit }}{% endif %}{% endif %});
{% endif %}
Console.WriteLine(answer.Value + " for " + answer.Charged + " USDC");
