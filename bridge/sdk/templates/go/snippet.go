{% set go = package.flat %}
client, err := {{ go }}.New({{ go }}.Config{}) // CONSUMER_SECRET, FARTHING_CA_FILE
if err != nil {
	log.Fatal(err)
}
{% if typed and not body %}
answer, err := client.{{ operation.name }}(ctx{% if operation.params %}, {{ go }}.{{ operation.params_type }}{{ "{" }}{% for a in arguments %}{{ a.name }}: {% if not a.required %}{{ go }}.Ptr[{{ go ~ "." if a.type.name }}{{ a.type.bare }}]({% endif %}{% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ go }}.{{ a.choice_type }}_{{ a.choice }}{% endif %}{% if not a.required %}){% endif %}{{ ", " if not loop.last else "" }}{% endfor %}{{ "}" }}{% endif %})
{% else %}
answer, err := client.Call(ctx, "{{ operation.method }}", {{ operation.path|lit }}, map[string]string{ {%- for t in texts %}{{ t.name|lit }}: {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor -%} }, {% if body %}{% if body_is_json %}{{ go }}.Json({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% else %}nil{% endif %})
{% endif %}
if err != nil {
	log.Fatal(err)
}
fmt.Println(string(answer.Body), answer.Charged, answer.Receipt)
