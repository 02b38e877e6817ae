{% for op in operations if op.params %}

/** Parameters of `{{ op.name }}`. */
export interface {{ op.params_type }} {
{% for p in op.params %}
{% if p.doc or p.default or p.deprecated %}
  /** {{ p.doc|doc(2) }}{% if p.default %}{{ " " if p.doc else "" }}Default: {{ p.default|doc(2) }}.{% endif %}{% if p.deprecated %} @deprecated{% endif %} */
{% endif %}
  {{ p.wire|key }}{{ "" if p.required else "?" }}: {{ p.type.bare }}{{ "" if p.required else " | undefined" }};
{% endfor %}
}
{% endfor %}
