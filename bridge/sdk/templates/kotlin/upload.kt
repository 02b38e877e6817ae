{% if is_form %}
import java.io.ByteArrayOutputStream
{% endif %}
import java.io.File
import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
{% if tls %}
import java.security.KeyStore
import java.security.cert.CertificateFactory
{% endif %}
{% if is_form %}
import java.util.UUID
{% endif %}
{% if tls %}
import javax.net.ssl.SSLContext
import javax.net.ssl.TrustManagerFactory
{% endif %}

fun main() {
{% include "tls.kt" %}
{% if file %}
    val body = File({{ file.name|lit }}).readBytes()
    val contentType = {{ file.content_type|lit }}
{% else %}
    val boundary = UUID.randomUUID().toString()
    val contentType = "multipart/form-data; boundary=$boundary"
    val form = ByteArrayOutputStream()
    fun part(name: String, content: ByteArray, file: String = "") {
        val named = if (file.isEmpty()) "" else "; filename=\"${file.replace("\"", "%22")}\""
        val head = "--$boundary\r\nContent-Disposition: form-data; name=\"$name\"$named\r\n\r\n"
        form.write(head.toByteArray() + content + "\r\n".toByteArray())
    }
{% for part in parts %}
{% if part.is_file %}
    part({{ part.name|lit }}, File({{ part.value|lit }}).readBytes(), {{ part.value|lit }})
{% else %}
    part({{ part.name|lit }}, {{ part.value|lit }}.toByteArray())
{% endif %}
{% endfor %}
    form.write("--$boundary--\r\n".toByteArray())
    val body = form.toByteArray()
{% endif %}
    val request = HttpRequest.newBuilder(URI.create({{ address|lit }}))
        .header("Authorization", "Bearer " + System.getenv("CONSUMER_SECRET"))
        .header("Content-Type", contentType)
{% for header in headers %}
        .header({{ header.name|lit }}, {{ header.value|lit }})
{% endfor %}
        .method({{ method|lit }}, HttpRequest.BodyPublishers.ofByteArray(body))
        .build()
    val answer = client.send(request, HttpResponse.BodyHandlers.ofString())
    println("${answer.statusCode()} ${answer.headers().firstValue("x-farthing-charged").orElse("")} USDC charged")
    println(answer.body())
}
