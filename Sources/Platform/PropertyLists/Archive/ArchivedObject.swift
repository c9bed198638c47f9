/// An object of a keyed archive, or a plain value.
public struct ArchivedObject: Sendable {
  let archive: KeyedArchive

  /// Its number in the archive, for recognizing it again.
  public let number: Int

  /// Its encoded value.
  public var content: PropertyList { archive.objects[number] }

  /// Its class name; nil for plain text, numbers and data.
  public var className: String? { archive.className(of: content) }

  /// Its class and ancestors, in this order.
  public var classNames: [String] { archive.classNames(of: content) }

  /// Returns the value of a key, without following references.
  public subscript(key: String) -> PropertyList? { content[key] }

  /// Returns the referenced object of a key; nil if missing or null.
  public func object(_ key: String) -> ArchivedObject? { content[key]?.uid.flatMap { archive.object($0) } }

  /// Returns the text of a key, plain or as a string object.
  public func string(_ key: String) -> String? {
    if let direct = content[key]?.string { return direct }
    return object(key)?.string
  }

  /// Returns the integer of a key, plain or as a number object.
  public func integer(_ key: String) -> Int64? {
    if let direct = content[key]?.integer { return direct }
    return object(key)?.content.integer
  }

  /// Returns the Boolean of a key; false if missing, since archivers omit false.
  public func boolean(_ key: String) -> Bool { content[key]?.boolean ?? object(key)?.content.boolean ?? false }

  /// Returns the number of a key, plain or as a number object.
  public func real(_ key: String) -> Double? { content[key]?.real ?? object(key)?.content.real }

  /// Its text: plain, or a string object (`NS.string`, or `NS.bytes` in UTF-8).
  public var string: String? {
    if let plain = content.string { return plain }
    guard case .dictionary(let fields) = content else { return nil }
    switch fields["NS.string"] {
    case .string(let text): return text
    case .uid(let number): return archive.object(number)?.content.string
    case nil, .null?, .boolean?, .integer?, .unsigned?, .real?, .date?, .data?, .array?, .dictionary?: break
    }
    return fields["NS.bytes"]?.data.flatMap { String(utf8: $0) }
  }

  /// The elements of an array or set, without nulls.
  public var elements: [ArchivedObject]? { references("NS.objects") }

  func references(_ key: String) -> [ArchivedObject]? {
    guard let list = content[key]?.array else { return nil }
    return list.compactMap { $0.uid.flatMap { archive.object($0) } }
  }

  /// The entries of a dictionary with text keys, in archive order.
  ///
  /// Includes dictionaries with known keys (`NSKnownKeysDictionary1`), in which stores keep their entities: the keys
  /// are in a mapping strategy, the values in parallel, and an empty slot holds a token.
  public var entries: [(key: String, value: ArchivedObject)]? {
    if let mapping = object("searchMapping") {
      guard let keys = mapping.object("keys")?.content["NS.objects"]?.array,
        let values = object("values")?.content["NS.objects"]?.array
      else { return nil }
      let empty = string("emptyToken") ?? Self.emptySlotToken
      return pairs(keys, values).filter { $0.value.content.string != empty }
    }
    guard let keys = content["NS.keys"]?.array, let values = content["NS.objects"]?.array else { return nil }
    return pairs(keys, values)
  }

  /// The token of an empty slot in a dictionary with known keys.
  public static let emptySlotToken = "__empty_slot_token_4c24_98dc_ac1e_b773__"

  private func pairs(_ keys: [PropertyList], _ values: [PropertyList]) -> [(key: String, value: ArchivedObject)] {
    var result: [(key: String, value: ArchivedObject)] = []
    for (key, value) in zip(keys, values) {
      guard let name = key.uid.flatMap({ archive.object($0) })?.string,
        let object = value.uid.flatMap({ archive.object($0) })
      else { continue }
      result.append((name, object))
    }
    return result
  }
}

extension KeyedArchive {
  fileprivate func className(of content: PropertyList) -> String? {
    content["$class"]?.uid.flatMap { object($0) }?.content["$classname"]?.string
  }

  fileprivate func classNames(of content: PropertyList) -> [String] {
    guard let description = content["$class"]?.uid.flatMap({ object($0) })?.content else { return [] }
    if let names = description["$classes"]?.array { return names.compactMap(\.string) }
    return description["$classname"]?.string.map { [$0] } ?? []
  }
}
