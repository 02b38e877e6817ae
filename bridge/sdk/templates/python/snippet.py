{% macro value(v) %}{% if v.kind == "text" %}{{ v.text|lit }}{% elif v.kind == "number" %}{{ v.number }}{% elif v.kind == "boolean" %}{{ "True" if v.boolean else "False" }}{% elif v.kind == "choice" %}sdk.{{ v.choice_type }}.{{ v.choice }}{% elif v.kind == "list" %}[{% for item in v.holds %}{{ value(item) }}{{ ", " if not loop.last }}{% endfor %}]{% elif v.kind == "form" %}sdk.{{ v.type.name }}({% for m in v.holds %}{{ m.name }}={{ value(m) }}{{ ", " if not loop.last }}{% endfor %}){% else %}{% set content %}pathlib.Path({{ v.text|lit }}).read_bytes(){% endset %}{% if v.kind == "upload" %}sdk.Upload({{ content }}, {{ v.text|lit }}){% else %}{{ content }}{% endif %}{% endif %}{% endmacro %}
{% if body_is_json and body is not none %}
import json

{% endif %}
{% if upload %}
import pathlib

{% endif %}
import {{ package.snake }} as sdk

client = sdk.Client()
{% if typed %}
answer = client.{{ operation.name }}({% for a in arguments %}{{ a.name }}={{ value(a) }}{{ ", " if not loop.last or upload }}{% endfor %}{% if upload %}body={{ value(upload) }}{% endif %})
{% else %}
answer = client.call(
    "{{ operation.method }}",
    {{ operation.path|lit }},
{% if texts %}
    {
{% for t in texts %}
        {{ t.name|lit }}: {{ t.text|lit }},
{% endfor %}
    },
{% endif %}
{% if body is not none %}
    body={% if body_is_json %}json.loads({{ body|lit }}){% else %}{{ body|lit }}{% endif %},
{% endif %}
)
{% endif %}
print(answer.value, answer.charged)
