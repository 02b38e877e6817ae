import shelf.Book
import shelf.CallOptions
import shelf.Client
import shelf.NodeException

private fun show(what: String, books: Sequence<Book>) {
    println("$what ${books.joinToString(" ") { "${it.id}" }}")
}

/** All pages, two of them, and one that is too dear: see tests/tests/sdk. */
public fun main() {
    val client = Client()
    show("cursor", client.iterateByCursor(limit = 2))
    show("page", client.iterateByPage(limit = 2))
    show("offset", client.iterateByOffset(limit = 2, maxPages = 2))
    try {
        client.iterateByPage(limit = 2, options = CallOptions(maxPrice = "0.0001")).first()
    } catch (e: NodeException) {
        println("pages-budget ${e.code} ${e.charged}")
    }
}
