var client = new Client(); // CONSUMER_SECRET, FARTHING_CA_FILE
{% if typed %}
var answer = await client.{{ operation.name }}({% for a in arguments %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %});
{% else %}
var answer = await client.Call("{{ operation.method }}", {{ operation.path|lit }}, new Dictionary<string, string> { {%- for t in texts %} { {{- t.name|lit }}, {{ t.text|lit }} }{{ "," if not loop.last else "" }}{% endfor %} }{% if body is not none %}, {% if body_is_json %}JsonDocument.Parse({{ body|lit }}).RootElement{% else %}{{ body|lit }}{% endif %}{% endif %});
{% endif %}
Console.WriteLine(answer.Value + " for " + answer.Charged + " USDC");
