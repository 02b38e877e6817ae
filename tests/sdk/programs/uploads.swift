import Foundation
import Sizes

/// An image in a form and as a body, and a form that is sent twice. There is no compiler to run this one with: it is parsed.
@main
struct Program {
    static func main() async throws {
        let client = try Client()
        let content = try Data(contentsOf: URL(fileURLWithPath: "dot.png"))
        let form = ImageSizeForm(image: Upload(content, name: "dot.png", mediaType: "image/png"), note: "Z\u{fc}rich --farthing-sizeswift")
        let answer = try await client.imageSize(body: form)
        print("form \(answer.value.width) \(answer.value.file ?? "") \(answer.charged)")
        let raw = try await client.rawImageSize(body: content)
        print("raw \(raw.value.width)")
        for _ in 0..<2 {
            let again = try await client.imageSize(body: form, options: CallOptions(callId: "size-swift"))
            print("again \(again.value.width)")
        }
    }
}
