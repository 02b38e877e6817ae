{% if tls %}
	authority, err := os.ReadFile(os.Getenv("FARTHING_CA_FILE"))
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
{% else %}
	client := &http.Client{}
{% endif %}
