import {{ package.pascal }}

/// One call, and what it cost. Set CONSUMER_SECRET and FARTHING_CA_FILE, then: swift run first-call
@main
struct FirstCall {
    static func main() async throws {
        let client = try Client()
{% if example %}
        let answer = try await client.{{ example.name }}({% for a in example.example %}{{ a.name }}: {% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last }}{% endfor %})
{% else %}
        let answer = try await client.call("GET", "/")
{% endif %}
        print("\(answer.body.count) bytes for \(answer.charged) USDC, receipt \(answer.receipt)")
    }
}
