// swift-tools-version: 6.2
import PackageDescription

// All that an app needs to open its store: no command line, no pages, nothing that sends. `traits: []` leaves out the
// tool's parts, and what they depend on is neither resolved nor built.
let package = Package(
  name: "OpenStore",
  platforms: [.macOS(.v13), .iOS(.v16)],
  dependencies: [
    .package(name: "Lazaret", path: "../..", traits: [])
  ],
  targets: [
    .executableTarget(
      name: "OpenStore",
      dependencies: [.product(name: "Lazaret", package: "Lazaret")],
      swiftSettings: [
        .enableUpcomingFeature("MemberImportVisibility"), .enableUpcomingFeature("InternalImportsByDefault"),
      ])
  ]
)
