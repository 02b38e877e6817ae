import Things

/// What is written and read exactly, and what errors tell. There is no compiler to run it with: it is parsed.
@main
struct Exact {
    static func main() async throws {
        let sent = Thing(
            label: "swift", count: 9_007_199_254_740_993, huge: UInt64.max, nullable: nil, both: .null,
            pet: .dog(Dog(kind: "dog", name: "Rex")), loose: .integer(7))
        let client = try Client()
        let answer = try await client.keepThing(sent)
        print("exact \(answer.value.count) \(answer.value.huge ?? 0) \(answer.charged)")
        do {
            _ = try await client.getThing(id: "missing")
        } catch let error as FarthingError {
            print("missing \(error.charged ?? false)")
        }
    }
}
