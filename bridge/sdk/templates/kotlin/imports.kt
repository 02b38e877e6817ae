import java.io.ByteArrayInputStream
{% if has_parts %}
import java.io.ByteArrayOutputStream
{% endif %}
import java.io.File
import java.io.IOException
import java.math.BigDecimal
import java.math.BigInteger
import java.net.ConnectException
import java.net.URI
import java.net.URISyntaxException
import java.net.http.HttpClient
import java.net.http.HttpConnectTimeoutException
import java.net.http.HttpHeaders
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.net.http.HttpTimeoutException
import java.security.GeneralSecurityException
import java.security.KeyStore
import java.security.cert.CertPathBuilderException
import java.security.cert.CertificateException
import java.security.cert.CertificateFactory
import java.time.Duration
import java.util.Base64
import java.util.UUID
import java.util.concurrent.ExecutionException
import java.util.concurrent.ThreadLocalRandom
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
import javax.net.ssl.SSLContext
import javax.net.ssl.TrustManagerFactory

