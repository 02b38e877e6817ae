curl {% if tls %}--cacert "$FARTHING_CA_FILE" {% endif %}{% if not is_post %}-X {{ method|lit }} {% endif %}{{ address|lit }} \
  -H "Authorization: Bearer $CONSUMER_SECRET"
{%- for header in headers %} \
  -H {{ header.curl|lit }}
{%- endfor %}
{%- if file %} \
  -H {{ file.curl_header|lit }} \
  --data-binary {{ file.curl_data|lit }}
{%- endif %}
{%- for part in parts %} \
  {{ part.curl_option }} {{ part.curl|lit }}
{%- endfor %}

