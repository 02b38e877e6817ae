{% if tls %}
// Run it with NODE_EXTRA_CA_CERTS="$FARTHING_CA_FILE" node call.mjs
{% endif %}
