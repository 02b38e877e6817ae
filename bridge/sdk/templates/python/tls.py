{% if tls %}
trust = ssl.create_default_context(cafile=os.environ["FARTHING_CA_FILE"])
{% endif %}
with urllib.request.urlopen(request{% if tls %}, context=trust{% endif %}) as answer:
    print(answer.headers["x-farthing-charged"], "USDC charged")
    print(answer.read().decode())
