import os, {% if tls %}ssl, {% endif %}urllib.request{% if is_form %}, uuid{% endif %}


{% if file %}
with open({{ file.name|lit }}, "rb") as file:
    body = file.read()
content_type = {{ file.content_type|lit }}
{% else %}
boundary = uuid.uuid4().hex
content_type = f"multipart/form-data; boundary={boundary}"


def part(name, content, file=""):
    named = f'; filename="{file}"' if file else ""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + content + b"\r\n"


body = b""
{% for part in parts %}
{% if part.is_file %}
with open({{ part.value|lit }}, "rb") as file:
    body += part({{ part.name|lit }}, file.read(), {{ part.value|lit }})
{% else %}
body += part({{ part.name|lit }}, {{ part.value|lit }}.encode())
{% endif %}
{% endfor %}
body += f"--{boundary}--\r\n".encode()
{% endif %}
request = urllib.request.Request(
    {{ address|lit }},
    data=body,
    method={{ method|lit }},
    headers={
        "Authorization": "Bearer " + os.environ["CONSUMER_SECRET"],
        "Content-Type": content_type,
{% for header in headers %}
        {{ header.name|lit }}: {{ header.value|lit }},
{% endfor %}
    },
)
{% include "tls.py" %}
