// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "{{ package.kebab }}",
    platforms: [.macOS(.v12), .iOS(.v15)],
    products: [.library(name: "{{ package.pascal }}", targets: ["{{ package.pascal }}"])],
    targets: [
        .target(name: "{{ package.pascal }}", path: "Sources"),
        .executableTarget(name: "first-call", dependencies: ["{{ package.pascal }}"], path: "Examples"),
    ]
)
