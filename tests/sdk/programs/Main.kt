import kotlin.math.roundToLong
import quakes.Client
import quakes.FarthingConfig
import quakes.FarthingException
import quakes.NodeException

private fun refused(what: String, named: String, call: () -> Unit) {
    try {
        call()
    } catch (e: FarthingException) {
        val code = (e as? NodeException)?.code ?: ""
        println("$what $code ${checkNotNull(e.charged)} ${named in e.message.orEmpty()}")
        return
    } catch (e: planets.FarthingException) {
        val code = (e as? planets.NodeException)?.code ?: ""
        println("$what $code ${checkNotNull(e.charged)} ${named in e.message.orEmpty()}")
        return
    }
    error("$what: no error")
}

/** What every language does: see tests/tests/sdk. */
public fun main() {
    // docs: begin
    val client = Client() // CONSUMER_SECRET and FARTHING_CA_FILE are set
    val answer = client.recentEarthquakes(limit = 3)
    for (event in answer.value.features) {
        println("${event.properties.place} ${event.properties.mag}")
    }
    println("paid ${answer.charged} USDC, receipt ${answer.receipt}")
    // docs: end
    val first = answer.value.features.first()
    val magnitude = (checkNotNull(first.properties.mag) * 10).roundToLong()
    println("recent ${answer.value.features.size} ${first.id} ${first.properties.time} $magnitude ${answer.charged}")

    val many = Client(FarthingConfig(baseUrl = System.getenv("DROPPING_URL"))).recentEarthquakes(limit = 40)
    println("again ${many.value.features.size} ${many.charged}")

    refused("refused", "limit") { client.recentEarthquakes(limit = 0) }
    refused("budget", "") { Client(FarthingConfig(maxPrice = "0.001")).recentEarthquakes() }
    refused("untrusted", "") { Client(FarthingConfig(caFile = System.getenv("WRONG_CA_FILE"))).recentEarthquakes() }

    val stars = planets.Client()
    val found = stars.planets(discoveryMethod = "Transit", limit = 2)
    println("planets ${found.value.size} ${found.value[0].name} ${found.value[0].discoveryYear} ${found.charged}")

    val others = planets.Client(planets.FarthingConfig(baseUrl = System.getenv("DROPPING_PLANETS_URL"))).planets(limit = 40)
    println("planets-again ${others.value.size} ${others.charged}")

    val wrong = planets.FarthingConfig(caFile = System.getenv("WRONG_CA_FILE"))
    refused("planets-refused", "fields") { stars.planets(fields = "nothing") }
    refused("planets-budget", "") { planets.Client(planets.FarthingConfig(maxPrice = "0.001")).planets() }
    refused("planets-untrusted", "") { planets.Client(wrong).planets() }
}
