import Shelf

/// All pages, and two of them. There is no compiler to run this one with: it is parsed.
@main
struct Program {
    static func main() async throws {
        let client = try Client()
        for try await book in client.iterateByCursor(limit: 2) {
            print(book.id)
        }
        for try await book in client.iterateByOffset(limit: 2, maxPages: 2) {
            print(book.id)
        }
    }
}
