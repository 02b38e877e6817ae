# CONSUMER_SECRET and FARTHING_CA_FILE as `farthing secret show` and tls/ca.pem of the node's data folder have them.
{% if upload %}
./{{ package.kebab }}.sh {{ operation.name }}{% for a in arguments %} {{ a.wire|lit }}={{ a.text|lit }}{% endfor %}
{%- if upload.kind == "bytes" %} --body @{{ upload.text|lit }}
{%- else %}
{%- for m in upload.holds %}
{%- for v in (m.holds if m.kind == "list" else [m]) %} --part {{ m.wire|lit }}={{ "@" if v.kind == "upload" }}{{ v.text|lit }}
{%- endfor %}
{%- endfor %}
{%- endif %}

{% else %}
curl --cacert "$FARTHING_CA_FILE" --header @- --data-binary {{ request|lit }} \
  {{ base_url|lit }}/internal/call <<<"authorization: Bearer $CONSUMER_SECRET"
{% endif %}
