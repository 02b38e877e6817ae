import {{ package.flat }}.Client

/** One call, and what it cost. Set CONSUMER_SECRET and FARTHING_CA_FILE. */
public fun main() {
    val client = Client()
{% if example %}
    val answer = client.{{ example.name }}({% for a in example.example %}{{ a.name }} = {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.flat }}.{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %})
{% else %}
    val answer = client.call("GET", "/")
{% endif %}
    println("${answer.body.size} bytes for ${answer.charged} USDC, receipt ${answer.receipt}")
}
