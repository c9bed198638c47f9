internal import Platform

/// The capabilities of a tus receiver.
struct ReceiverAbilities: Sendable, Hashable {
  /// The largest upload in bytes.
  var maxSize: Int64?

  var checksSums = false

  init() {}

  /// Reads an `OPTIONS` answer; nil if not of tus.
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
