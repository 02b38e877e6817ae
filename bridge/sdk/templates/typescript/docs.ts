{% if op.price %}
   *
   * Price: {{ op.price|doc(2) }} USDC a call.
{% endif %}
{% if op.example is not none %}
   *
{% set list = op.example %}
{% set shown %}{% include "arguments" %}{% endset %}
   * @example await client.{{ op.name }}({{ shown|doc(2) }})
{% endif %}
{% if op.deprecated %}
   * @deprecated
{% endif %}
   */
