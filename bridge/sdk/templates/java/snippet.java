{% macro value(v) %}{% if v.kind == "text" %}{{ v.text|lit }}{% elif v.kind == "number" %}{% if v.type.width == "u64" %}new java.math.BigInteger("{{ v.number }}"){% else %}{{ v.number }}{{ "L" if v.type.width in ["i53", "i64"] }}{% endif %}{% elif v.kind == "boolean" %}{{ "true" if v.boolean else "false" }}{% elif v.kind == "choice" %}Models.{{ v.choice_type }}.{{ v.choice }}{% elif v.kind == "list" %}java.util.List.of({% for item in v.holds %}{{ value(item) }}{{ ", " if not loop.last }}{% endfor %}){% elif v.kind == "form" %}form{% else %}{% set content %}java.nio.file.Files.readAllBytes(java.nio.file.Path.of({{ v.text|lit }})){% endset %}{% if v.kind == "upload" %}new Farthing.Upload({{ content }}, {{ v.text|lit }}, "application/octet-stream"){% else %}{{ content }}{% endif %}{% endif %}{% endmacro %}
var client = new Client(); // CONSUMER_SECRET, FARTHING_CA_FILE
{% if upload %}
{% set has = namespace(optional=false) %}
{% for p in operation.params if not p.required %}
{% set has.optional = true %}
{% endfor %}
{% if upload.kind == "form" %}
var form = new Models.{{ upload.type.name }}();
{% for m in upload.holds %}
form.{{ m.name }} = {{ value(m) }};
{% endfor %}
{% endif %}
var answer = client.{{ operation.name }}({% for a in arguments if a.required %}{{ value(a) }}, {% endfor %}{{ value(upload) }}{% if has.optional %}, new Client.{{ operation.params_type }}(){% for a in arguments if not a.required %}.{{ a.name }}({{ value(a) }}){% endfor %}{% endif %});
{% else %}
var params = new java.util.LinkedHashMap<String, String>();
{% for t in texts %}
params.put({{ t.name|lit }}, {{ t.text|lit }});
{% endfor %}
var answer = client.call("{{ operation.method }}", {{ operation.path|lit }}, params, {% if body is not none %}{% if body_is_json %}Farthing.Json.read({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% else %}null{% endif %}, new Farthing.CallOptions());
{% endif %}
System.out.println(answer.value() + " for " + answer.charged() + " USDC");
