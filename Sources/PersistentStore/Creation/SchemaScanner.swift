struct SchemaScanner {
  private let bytes: [UInt8]
  private var offset = 0

  private(set) var line = 1

  init(bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { offset >= bytes.count }

  mutating func skipSeparators() {
    var next = offset
    while let end = separatorEnd(at: next) { next = end }
    move(to: next)
  }

  /// Skips a statement, possibly with its skipped leading comments, and returns whether it was found.
  mutating func advance(over statement: [UInt8]) -> Bool {
    guard !statement.isEmpty else { return false }
    var start = previousEnd
    while start <= offset {
      let end = start + statement.count
      if end <= bytes.count, bytes[start..<end].elementsEqual(statement) {
        move(to: end)
        previousEnd = offset
        return true
      }
      guard let next = separatorEnd(at: start) else { return false }
      start = next
    }
    return false
  }

  private var previousEnd = 0

  /// Returns upper-cased words and single signs, without comments.
  func words(_ count: Int) -> [String] {
    var words: [String] = []
    var next = offset
    while words.count < count, let byte = byte(at: next) {
      if let end = separatorEnd(at: next) {
        next = end
      } else if Self.isWord(byte) {
        let start = next
        while let byte = self.byte(at: next), Self.isWord(byte) { next += 1 }
        words.append(String(decoding: bytes[start..<next], as: UTF8.self).uppercased())
      } else {
        words.append(String(decoding: [byte], as: UTF8.self))
        next += 1
      }
    }
    return words
  }

  struct Made {
    var name: String
    var isVirtual: Bool
  }

  var made: Made? {
    var next = self
    func take(_ word: String) -> Bool {
      guard next.words(1) == [word] else { return false }
      _ = next.takeName()
      return true
    }
    guard take("CREATE") else { return nil }
    let isVirtual = take("VIRTUAL")
    guard take("TABLE") else { return nil }
    if take("IF") { for word in ["NOT", "EXISTS"] where !take(word) { return nil } }
    return next.takeName().map { Made(name: $0, isVirtual: isVirtual) }
  }

  mutating func skipStatement() {
    var next = offset
    while let byte = byte(at: next), byte != UInt8(ascii: ";") {
      next = separatorEnd(at: next) ?? quotedEnd(at: next) ?? next + 1
    }
    move(to: min(next + 1, bytes.count))
    previousEnd = offset
  }

  var rest: String { String(decoding: bytes[min(offset, bytes.count)...], as: UTF8.self) }

  private mutating func takeName() -> String? {
    skipSeparators()
    let start = offset
    if let end = quotedEnd(at: start) {
      move(to: end)
      return String(decoding: bytes[(start + 1)..<max(start + 1, end - 1)], as: UTF8.self)
    }
    var end = start
    while let byte = byte(at: end), Self.isWord(byte) || byte >= 0x80 || byte == UInt8(ascii: "$") { end += 1 }
    move(to: end)
    return end > start ? String(decoding: bytes[start..<end], as: UTF8.self) : nil
  }

  /// Returns the end of a quoted text here, if any.
  private func quotedEnd(at start: Int) -> Int? {
    guard let open = byte(at: start), [0x22, 0x27, 0x60, 0x5B].contains(open) else { return nil }
    let close = open == 0x5B ? 0x5D : open
    var end = start + 1
    while let byte = byte(at: end), byte != close { end += 1 }
    return min(end + 1, bytes.count)
  }

  /// Returns the end of white space, semicolon or comment here, if any.
  private func separatorEnd(at start: Int) -> Int? {
    guard let first = byte(at: start) else { return nil }
    if Self.isSpace(first) || first == UInt8(ascii: ";") { return start + 1 }
    guard let second = byte(at: start + 1) else { return nil }
    if first == UInt8(ascii: "-"), second == first {
      var end = start + 2
      while let byte = byte(at: end), byte != UInt8(ascii: "\n") { end += 1 }
      return end
    }
    if first == UInt8(ascii: "/"), second == UInt8(ascii: "*") {
      var end = start + 2
      while let byte = byte(at: end) {
        if byte == UInt8(ascii: "*"), self.byte(at: end + 1) == UInt8(ascii: "/") { return end + 2 }
        end += 1
      }
      return end
    }
    return nil
  }

  private mutating func move(to end: Int) {
    line += bytes[offset..<max(offset, end)].count { $0 == UInt8(ascii: "\n") }
    offset = max(offset, end)
  }

  private func byte(at index: Int) -> UInt8? { bytes.indices.contains(index) ? bytes[index] : nil }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D].contains(byte) }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }
}

enum SchemaStatementRule {
  case run

  /// Compiled but not run: irrelevant to an empty store.
  case ignore
  case refuse(String)

  static func verdict(on words: [String]) -> SchemaStatementRule {
    switch words.first {
    case "CREATE", "INSERT", "REPLACE", "UPDATE", "DELETE", "ALTER", "DROP", "ANALYZE", "REINDEX", "WITH": .run
    case "BEGIN", "COMMIT", "END": .ignore
    case "PRAGMA": verdict(onPragma: words)
    case nil: .refuse("is empty")
    default: .refuse("is not one that creates a schema")
    }
  }

  private static func verdict(onPragma words: [String]) -> SchemaStatementRule {
    // `PRAGMA main.user_version` starts with its database.
    let name = words.count > 3 && words[2] == "." ? words[3] : words.count > 1 ? words[1] : ""
    switch name {
    case "USER_VERSION", "APPLICATION_ID", "ENCODING", "AUTO_VACUUM": return .run
    case "FOREIGN_KEYS", "JOURNAL_MODE", "SYNCHRONOUS", "PAGE_SIZE", "CACHE_SIZE", "TEMP_STORE", "DEFER_FOREIGN_KEYS",
      "RECURSIVE_TRIGGERS", "LEGACY_ALTER_TABLE":
      return .ignore
    default: return .refuse("is a pragma that a schema may not have")
    }
  }
}
