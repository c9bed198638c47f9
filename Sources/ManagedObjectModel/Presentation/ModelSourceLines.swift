public import Platform
public import SystemPackage

/// Where the entities and properties of a version stand in the XML of its source, for editors and build servers.
public struct ModelSourceLines: Sendable {
  /// The file with the XML, below the path that the model was loaded by.
  public let file: FilePath

  /// The line of each entity, and of each property as `Car.color`, from 1.
  private var lines: [String: Int] = [:]

  /// Looks for the source of a version of a bundle.
  ///
  /// Returns nil where the version was not read from a source, or where that cannot be read.
  public init?(_ version: String, of bundle: ModelBundle, fileSystem: FileSystem = FileSystem()) {
    guard let path = bundle.path else { return nil }
    let places = [path.appending("\(version).xcdatamodel").appending("contents"), path.appending("contents"), path]
    // The model has been read, and that is where its errors were told; a place that cannot be looked at has no lines.
    guard let found = places.first(where: { (try? fileSystem.status(of: $0))?.kind == .regular }),
      found.lastComponent?.string == "contents",
      let bytes = try? fileSystem.contents(of: found, limit: 64 << 20)
    else { return nil }
    file = found
    read(bytes)
  }

  /// The line of a property, of its entity where the version lacks that, or the first one.
  public func line(entity: String?, property: String?) -> Int {
    guard let entity else { return 1 }
    // A leaf of a composite attribute stands elsewhere; its attribute counts.
    let name = property.flatMap { $0.split(separator: ".").first.map(String.init) }
    return name.flatMap { lines["\(entity).\($0)"] } ?? lines[entity] ?? 1
  }

  // MARK: Reading

  private static let properties: Set<String> = ["attribute", "relationship", "fetchedProperty"]

  /// Goes over the tags once; the XML has been read as a model before, so that nothing is checked here.
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

  /// The place after some bytes; the end where they do not come.
  private static func end(of marker: [UInt8], in bytes: [UInt8], from start: Int) -> Int {
    var place = start
    while let found = bytes[place...].firstIndex(of: marker[0]) {
      if bytes[found...].starts(with: marker) { return found + marker.count }
      place = found + 1
    }
    return bytes.count
  }

  /// The place after a tag's closing bracket, which may also stand in a value.
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

  /// The value of a tag's attribute `name`.
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
