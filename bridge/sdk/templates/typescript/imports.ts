import type { Answer, CallOptions, ClientOptions, Integer{{ ", PageOptions" if has_paging }}{{ ", Upload" if has_parts }} } from "./runtime.js";
{% if types %}
import type {
{% for t in types %}
  {{ t.name }},
{% endfor %}
} from "./models.js";
{% endif %}

export type { Integer{{ ", Upload" if has_parts }} };
