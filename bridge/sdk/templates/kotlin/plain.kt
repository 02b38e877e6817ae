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
{% include "tls.kt" %}
    val request = HttpRequest.newBuilder(URI.create({{ address|lit }}))
        .header("Authorization", "Bearer " + System.getenv("CONSUMER_SECRET"))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(call))
        .build()
    val answer = client.send(request, HttpResponse.BodyHandlers.ofString())
    println("${answer.statusCode()} ${answer.headers().firstValue("x-farthing-charged").orElse("")} USDC charged")
    println(answer.body())
}
