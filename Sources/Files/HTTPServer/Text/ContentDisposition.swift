/// The name that a browser keeps a download under (RFC 6266).
enum ContentDisposition {
  /// The field for an attachment: a plain name for all clients, the exact one for those that know RFC 8187.
  static func attachment(_ name: String) -> String {
    // The last part only, no hidden file, nothing that is special anywhere.
    let scalars = name.unicodeScalars.map { scalar -> Character in
      let isSpecial =
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || "/\\:*?\"<>|".unicodeScalars.contains(scalar)
        || (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
      return isSpecial ? "_" : Character(scalar)
    }
    var safe = String(scalars.prefix(150))
    if safe.hasPrefix(".") || safe.isEmpty { safe = "_" + safe.dropFirst() }
    let plain = String(safe.unicodeScalars.map { $0.isASCII && $0 != "%" && $0 != "'" ? Character($0) : "_" })
    return "attachment; filename=\"\(plain)\"; filename*=UTF-8''\(PercentEncoding.encode(safe))"
  }
}
