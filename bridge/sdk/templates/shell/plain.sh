curl {% if tls %}--cacert "$FARTHING_CA_FILE" {% endif %}{{ address|lit }} \
  -H "Authorization: Bearer $CONSUMER_SECRET" \
  -H 'Content-Type: application/json' \
  --data-raw {{ call }}
