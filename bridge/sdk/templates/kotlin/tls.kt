{% if tls %}
    val authority = File(System.getenv("FARTHING_CA_FILE")).inputStream().use {
        CertificateFactory.getInstance("X.509").generateCertificate(it)
    }
    val store = KeyStore.getInstance(KeyStore.getDefaultType())
    store.load(null, null)
    store.setCertificateEntry("farthing", authority)
    val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm())
    trust.init(store)
    val tls = SSLContext.getInstance("TLS")
    tls.init(null, trust.trustManagers, null)
    val client = HttpClient.newBuilder().sslContext(tls).build()
{% else %}
    val client = HttpClient.newHttpClient()
{% endif %}
