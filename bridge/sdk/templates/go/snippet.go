{% set go = package.flat %}
{% macro type(t) %}{% if t.kind == "array" %}[]{{ type(t.of) }}{% else %}{{ go ~ "." if t.name or t.kind == "upload" }}{{ t.name or t.bare }}{% endif %}{% endmacro %}
{% macro given(v) %}{{ v.name }}: {% if v.required or v.kind == "list" %}{{ value(v) }}{% else %}{{ go }}.Ptr[{{ type(v.type) }}]({{ value(v) }}){% endif %}{% endmacro %}
{% macro value(v) %}{% if v.kind == "text" %}{{ v.text|lit }}{% elif v.kind == "number" %}{{ v.number }}{% elif v.kind == "boolean" %}{{ "true" if v.boolean else "false" }}{% elif v.kind == "choice" %}{{ go }}.{{ v.choice_type }}_{{ v.choice }}{% elif v.kind == "list" %}{{ type(v.type) }}{{ "{" }}{% for item in v.holds %}{{ value(item) }}{{ ", " if not loop.last }}{% endfor %}{{ "}" }}{% elif v.kind == "form" %}{{ go }}.{{ v.type.name }}{{ "{" }}{% for m in v.holds %}{{ given(m) }}{{ ", " if not loop.last }}{% endfor %}{{ "}" }}{% else %}{% set content %}read({{ v.text|lit }}){% endset %}{% if v.kind == "upload" %}{{ go }}.Upload{Content: {{ content }}, Name: {{ v.text|lit }}, MediaType: "application/octet-stream"{{ "}" }}{% else %}{{ content }}{% endif %}{% endif %}{% endmacro %}
client, err := {{ go }}.New({{ go }}.Config{}) // CONSUMER_SECRET, FARTHING_CA_FILE
if err != nil {
	log.Fatal(err)
}
{% if upload %}
read := func(name string) []byte {
	content, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	return content
}
{% endif %}
{% if typed and not body %}
answer, err := client.{{ operation.name }}(ctx{% if operation.params %}, {{ go }}.{{ operation.params_type }}{{ "{" }}{% for a in arguments %}{{ given(a) }}{{ ", " if not loop.last }}{% endfor %}{{ "}" }}{% endif %}{% if upload %}, {% if not operation.body.required and upload.kind == "form" %}&{% endif %}{{ value(upload) }}{% elif operation.body %}, nil{% endif %})
{% else %}
answer, err := client.Call(ctx, "{{ operation.method }}", {{ operation.path|lit }}, map[string]string{ {%- for t in texts %}{{ t.name|lit }}: {{ t.text|lit }}{{ ", " if not loop.last else "" }}{% endfor -%} }, {% if body %}{% if body_is_json %}{{ go }}.Json({{ body|lit }}){% else %}{{ body|lit }}{% endif %}{% else %}nil{% endif %})
{% endif %}
if err != nil {
	log.Fatal(err)
}
fmt.Println(string(answer.Body), answer.Charged, answer.Receipt)
