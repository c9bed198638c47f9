/// What an extended header says of the file that follows (POSIX.1-2001, "pax Extended Header").
struct PaxRecords: Sendable {
  private(set) var path: [UInt8]?
  private(set) var size: Int64?

  init() {}

  /// Whether it says nothing of a file.
  var isEmpty: Bool { path == nil && size == nil }

  /// The records of an extended header: each its length, a space, key, `=`, value, newline.
  init(_ bytes: [UInt8]) throws(ArchiveError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let digits = rest.prefix { (48...57).contains($0) }
      guard (1...6).contains(digits.count) else { throw Self.damaged }
      let length = digits.reduce(0) { $0 * 10 + Int($1 - 48) }
      guard length > digits.count + 2, length <= rest.count else { throw Self.damaged }
      let record = rest.prefix(length).dropFirst(digits.count)
      rest = rest.dropFirst(length)
      guard record.first == UInt8(ascii: " "), record.last == UInt8(ascii: "\n"),
        let sign = record.firstIndex(of: UInt8(ascii: "="))
      else { throw Self.damaged }
      let key = String(decoding: record[(record.startIndex + 1)..<sign], as: UTF8.self)
      let value = record[(sign + 1)...].dropLast()
      switch key {
      case "path":
        guard path == nil, !value.contains(0) else { throw Self.damaged }
        path = Array(value)
      case "size":
        guard size == nil, let number = Int64(String(decoding: value, as: UTF8.self)), number >= 0 else {
          throw Self.damaged
        }
        size = number
      case "linkpath", "SCHILY.realsize", "GNU.sparse.major", "GNU.sparse.map", "GNU.sparse.name":
        throw ArchiveError(.notAFile, "an entry is a link or a sparse file")
      default: break
      }
    }
  }

  private static let damaged = ArchiveError(.tar, "an extended header is damaged")
}
