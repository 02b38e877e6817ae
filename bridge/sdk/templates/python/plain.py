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
{% if tls %}
trust = ssl.create_default_context(cafile=os.environ["FARTHING_CA_FILE"])
{% endif %}
with urllib.request.urlopen(request{% if tls %}, context=trust{% endif %}) as answer:
    print(answer.headers["x-farthing-charged"], "USDC charged")
    print(answer.read().decode())
