package {{ package.flat }}

/** What can be told without a node: ends with an error when something does not hold. */
public fun main() {
    val open = runCatching { Client(FarthingConfig(baseUrl = "http://node.example", secret = "none")) }
    check(open.exceptionOrNull() is IllegalArgumentException) { "the secret must not travel in the open" }
    val client = Client(FarthingConfig(baseUrl = "https://127.0.0.1:1", secret = "none", caFile = null, maxRetries = 0))
    val error = runCatching { client.call("GET", "/") }.exceptionOrNull()
    check(error is ConnectionException && error.charged == false) { "it must cost nothing" }
}
