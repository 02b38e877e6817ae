var client = new Client(); // CONSUMER_SECRET, FARTHING_CA_FILE
var params = new java.util.LinkedHashMap<String, String>();
{% for t in texts %}
params.put({{ t.name|lit }}, {{ t.text|lit }});
{% endfor %}
var answer = client.call("{{ operation.method }}", {{ operation.path|lit }}, params, {% if body is not none %}{% if body_is_json %}Farthing.Json.read({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% else %}null{% endif %}, new Farthing.CallOptions());
System.out.println(answer.value() + " for " + answer.charged() + " USDC");
