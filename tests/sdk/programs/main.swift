import Quakes

/// The call that every language makes first. There is no compiler to run this one with: it is parsed.
@main
struct Program {
    static func main() async throws {
        // docs: begin
        let client = try Client() // CONSUMER_SECRET and FARTHING_CA_FILE are set
        let answer = try await client.recentEarthquakes(limit: 3)
        for event in answer.value.features {
            print(event.properties.place ?? "", event.properties.mag ?? 0)
        }
        print("paid \(answer.charged) USDC, receipt \(answer.receipt)")
        // docs: end
    }
}
