import json, os, {% if tls %}ssl, {% endif %}urllib.request

call = {{ call }}
request = urllib.request.Request(
    {{ address|lit }},
    data=json.dumps(call).encode(),
    headers={
        "Authorization": "Bearer " + os.environ["CONSUMER_SECRET"],
        "Content-Type": "application/json",
    },
)
{% include "tls.py" %}
