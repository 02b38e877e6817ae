{% if tls %}
import java.io.File
{% endif %}
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
{% if tls %}
import java.security.KeyStore
import java.security.cert.CertificateFactory
import javax.net.ssl.SSLContext
import javax.net.ssl.TrustManagerFactory
{% endif %}

val call = {{ call }}

fun main() {
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
    val request = HttpRequest.newBuilder(URI.create({{ address|lit }}))
        .header("Authorization", "Bearer " + System.getenv("CONSUMER_SECRET"))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(call))
        .build()
    val answer = client.send(request, HttpResponse.BodyHandlers.ofString())
    println("${answer.statusCode()} ${answer.headers().firstValue("x-farthing-charged").orElse("")} USDC charged")
    println(answer.body())
}
