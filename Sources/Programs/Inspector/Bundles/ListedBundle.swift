import HTTPServer
import StoreCoordination

/// A bundle that was written by this home.
struct ListedBundle: Sendable, Hashable, Encodable {
  /// The name of its file, which is also what it is called in addresses.
  let name: String

  let path: FilePath

  let bytes: Int64

  let date: Timestamp

  /// Whether its name says that it is encrypted.
  var isEncrypted: Bool { name.hasSuffix(".age") }

  var target: RequestTarget { .to("bundles", name) }

  /// Writes what lists tell of it.
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": name, "bytes": bytes, "date": date, "encrypted": isEncrypted, "location": target,
    ])
  }
}
