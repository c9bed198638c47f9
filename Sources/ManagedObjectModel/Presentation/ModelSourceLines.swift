public import Platform
public import SystemPackage

/// The source lines of a version's entities and properties, for editors and build servers.
public struct ModelSourceLines: Sendable {
  /// The XML file, relative to the model's path.
  public let file: FilePath

  /// The lines from 1, with keys such as `Car.color`.
  private var lines: [String: Int] = [:]

  /// Finds a version's source.
  ///
  /// Returns nil if the version has no readable source.
  public init?(_ version: String, of bundle: ModelBundle, fileSystem: FileSystem = FileSystem()) {
    guard let path = bundle.path else { return nil }
    let places = [path.appending("\(version).xcdatamodel").appending("contents"), path.appending("contents"), path]
    // Loading already reported errors; an inaccessible place has no lines.
    guard let found = places.first(where: { (try? fileSystem.status(of: $0))?.kind == .regular }),
      found.lastComponent?.string == "contents",
      let bytes = try? fileSystem.contents(of: found, limit: 64 << 20)
    else { return nil }
    file = found
    read(bytes)
  }

  /// Returns the line of a property, else of its entity, else the first.
  public func line(entity: String?, property: String?) -> Int {
    guard let entity else { return 1 }
    // A composite's leaf counts as its attribute.
    let name = property.flatMap { $0.split(separator: ".").first.map(String.init) }
    return name.flatMap { lines["\(entity).\($0)"] } ?? lines[entity] ?? 1
  }

  // MARK: Reading

  private static let properties: Set<String> = ["attribute", "relationship", "fetchedProperty"]

  /// Scans the already checked tags once.
  private mutating func read(_ bytes: [UInt8]) {
    var place = 0
    var line = 1
    var entity: String?
    func advance(to end: Int) {
      for byte in bytes[place..<end] where byte == UInt8(ascii: "\n") { line += 1 }
      place = end
    }
    while let start = bytes[place...].firstIndex(of: UInt8(ascii: "<")) {
      advance(to: start)
      let comment = Array("<!--".utf8)
      if bytes[place...].starts(with: comment) {
        advance(to: Self.end(of: Array("-->".utf8), in: bytes, from: place))
        continue
      }
      let end = Self.endOfTag(in: bytes, from: place)
      let tag = String(decoding: bytes[place..<end], as: UTF8.self)
      let element = tag.dropFirst().prefix { !$0.isWhitespace && $0 != ">" && $0 != "/" }
      if element == "entity", let name = Self.name(in: tag) {
        entity = name
        if lines[name] == nil { lines[name] = line }
        if tag.hasSuffix("/>") { entity = nil }
      } else if tag.hasPrefix("</entity") {
        entity = nil
      } else if Self.properties.contains(String(element)), let entity, let name = Self.name(in: tag) {
        if lines["\(entity).\(name)"] == nil { lines["\(entity).\(name)"] = line }
      }
      advance(to: end)
    }
  }

  private static func end(of marker: [UInt8], in bytes: [UInt8], from start: Int) -> Int {
    var place = start
    while let found = bytes[place...].firstIndex(of: marker[0]) {
      if bytes[found...].starts(with: marker) { return found + marker.count }
      place = found + 1
    }
    return bytes.count
  }

  /// Skips brackets in values.
  private static func endOfTag(in bytes: [UInt8], from start: Int) -> Int {
    var quote: UInt8?
    for place in bytes[start...].indices {
      let byte = bytes[place]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: ">") {
        return place + 1
      }
    }
    return bytes.count
  }

  private static func name(in tag: String) -> String? {
    let rest = tag.dropFirst()
    var quote: Character?
    var attribute = ""
    var value = ""
    for character in rest {
      if let open = quote {
        guard character == open else {
          value.append(character)
          continue
        }
        if attribute == "name" { return value }
        (quote, attribute, value) = (nil, "", "")
      } else if character == "\"" || character == "'" {
        quote = character
      } else if character.isWhitespace {
        attribute = ""
      } else if character != "=" {
        attribute.append(character)
      }
    }
    return nil
  }
}
