internal import Platform

/// What a receiver of tus says that it can do.
struct ReceiverAbilities: Sendable, Hashable {
  /// The most bytes of an upload; nil where it does not say.
  var maxSize: Int64?

  /// Whether the sum of each part is checked there.
  var checksSums = false

  init() {}

  /// What an answer to `OPTIONS` says; nil where it is none of tus.
  init?(_ response: UploadResponse) {
    guard (200...299).contains(response.status) else { return nil }
    let versions = Self.list(response[TusField.version])
    guard versions.isEmpty || versions.contains(TusVersion.current) else { return nil }
    maxSize = response.number(TusField.maxSize)
    checksSums =
      Self.list(response[TusField.extension]).contains("checksum")
      && Self.list(response[TusField.checksumAlgorithm]).contains("sha256")
  }

  private static func list(_ field: String?) -> [String] {
    (field ?? "").split(separator: ",").map { part in
      String(part.split(separator: " ").first ?? "").lowercased()
    }
  }
}
