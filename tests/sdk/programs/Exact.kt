import java.time.Duration
import things.Client
import things.ConnectionException
import things.Dog
import things.FarthingConfig
import things.FarthingException
import things.Nullable
import things.Pet
import things.ServiceException
import things.Thing
import things.ThingLoose

/** What is written and read exactly, and what errors tell: see tests/tests/sdk. */
public fun main() {
    val client = Client()
    val sent = Thing(
        label = "kotlin",
        count = 9007199254740993,
        huge = "18446744073709551615".toBigInteger(),
        nullable = null,
        both = Nullable(null),
        pet = Pet.OfDog(Dog(kind = "dog", name = "Rex")),
        loose = ThingLoose.OfInteger(7),
    )
    val answer = client.keepThing(sent)
    val kept = answer.value
    check(kept == sent) { "$kept" }
    val (pet, loose) = kept.pet as Pet.OfDog to kept.loose as ThingLoose.OfInteger
    println("exact ${kept.count} ${kept.huge} ${pet.value.name} ${loose.value} ${answer.charged}")

    val missing = runCatching { client.getThing("missing") }.exceptionOrNull() as ServiceException
    println("missing ${missing.answer.status} ${missing.charged}")
    val lossy = Client(FarthingConfig(baseUrl = System.getenv("DROPPING_THINGS_URL"), maxRetries = 0))
    val unknown = runCatching { lossy.getThing("long") }.exceptionOrNull() as ConnectionException
    println("unknown ${unknown.charged}")

    for (path in listOf("", "/headers")) {
        val url = System.getenv("DRIPPING_URL") + path
        val slow = Client(FarthingConfig(baseUrl = url, timeout = Duration.ofSeconds(2), maxRetries = 0))
        val failed = runCatching { slow.getThing("slow") }.exceptionOrNull() as FarthingException
        println("dripping${path.replace('/', '-')} ${failed.charged}")
    }
    for (node in System.getenv("LEAVING_URLS").split(' ')) {
        val (name, url) = node.split('=')
        val leaving = Client(FarthingConfig(baseUrl = url, maxRetries = 1))
        val failed = runCatching { leaving.getThing("gone") }.exceptionOrNull() as FarthingException
        println("$name ${failed.charged}")
    }
    val settings = listOf(
        "timeout" to FarthingConfig(timeout = Duration.ZERO),
        "maxRetries" to FarthingConfig(maxRetries = -1),
        "maxPrice" to FarthingConfig(maxPrice = "1e-05"),
        "baseUrl" to FarthingConfig(baseUrl = "https://localhost:notaport"),
        "baseUrl" to FarthingConfig(baseUrl = "http://127.0.0.1.example.com"),
        "baseUrl" to FarthingConfig(baseUrl = "https://localhost:3000/?x"),
        "baseUrl" to FarthingConfig(baseUrl = "https://u:p@localhost:3000"),
        "baseUrl" to FarthingConfig(baseUrl = "https://a b"),
        "secret" to FarthingConfig(secret = "a\nb"),
        "caFile" to FarthingConfig(caFile = "/nothing/here"),
    )
    for ((named, config) in settings) {
        val refused = runCatching { Client(config) }.exceptionOrNull() as IllegalArgumentException
        check(refused.message.orEmpty().startsWith(named)) { "$named: $refused" }
    }
    println("settings refused")
}
