# CONSUMER_SECRET and FARTHING_CA_FILE as `farthing secret show` and tls/ca.pem of the node's data folder have them.
curl --cacert "$FARTHING_CA_FILE" --header @- --data-binary {{ request|lit }} \
  {{ base_url|lit }}/internal/call <<<"authorization: Bearer $CONSUMER_SECRET"
