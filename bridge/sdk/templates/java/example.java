import {{ package.flat }}.Client;

/** One call, and what it cost. Set CONSUMER_SECRET and FARTHING_CA_FILE. */
public final class FirstCall {
  private FirstCall() {}

  /** Makes the call. */
  public static void main(String[] arguments) throws Exception {
    var client = new Client();
{% if example %}
    var answer = client.{{ example.name }}({% for a in example.example if a.required %}{% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{{ "L" if a.type.width in ["i53", "i64"] }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.flat }}.Models.{{ a.choice_type }}.{{ a.choice }}{% endif %}{{ ", " if not loop.last else "" }}{% endfor %}{% set has = namespace(required=false, optional=false) %}{% for p in example.params %}{% if p.required %}{% set has.required = true %}{% else %}{% set has.optional = true %}{% endif %}{% endfor %}{% if has.optional %}{{ ", " if has.required }}new Client.{{ example.params_type }}(){% for a in example.example if not a.required %}.{{ a.name }}({% if a.kind == "text" %}{{ a.text|lit }}{% elif a.kind == "number" %}{{ a.number }}{{ "L" if a.type.width in ["i53", "i64"] }}{% elif a.kind == "boolean" %}{{ "true" if a.boolean else "false" }}{% else %}{{ package.flat }}.Models.{{ a.choice_type }}.{{ a.choice }}{% endif %}){% endfor %}{% endif %});
{% else %}
    var answer = client.call("GET", "/", java.util.Map.of(), null, new {{ package.flat }}.Farthing.CallOptions());
{% endif %}
    System.out.println(answer.body().length + " bytes for " + answer.charged() + " USDC, receipt " + answer.receipt());
  }
}
