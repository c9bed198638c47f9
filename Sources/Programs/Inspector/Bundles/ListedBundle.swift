import HTTPServer
import StoreCoordination

/// A bundle that was written by this home.
struct ListedBundle: Sendable, Hashable, Encodable {
  /// The name of its file, which is also what it is called in addresses.
  let name: String

  /// Where it is.
  let path: FilePath

  /// Its size in bytes.
  let bytes: Int64

  /// When it was written.
  let date: Timestamp

  /// Whether its name says that it is encrypted.
  var isEncrypted: Bool { name.hasSuffix(".age") }

  /// Its page.
  var target: RequestTarget { .to("bundles", name) }

  /// Writes what lists tell of it.
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "name": name, "bytes": bytes, "date": date, "encrypted": isEncrypted, "location": target,
    ])
  }
}
