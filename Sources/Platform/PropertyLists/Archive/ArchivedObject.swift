/// An object of a keyed archive, or a plain value that stands for one.
public struct ArchivedObject: Sendable {
  let archive: KeyedArchive

  /// Its number in the archive, by which it can be recognized when it is met again.
  public let number: Int

  /// What stands at that number.
  public var content: PropertyList { archive.objects[number] }

  /// The name of its class; nil for plain text, numbers and data.
  public var className: String? { archive.className(of: content) }

  /// The names of its class and of that class's ancestors, itself first.
  public var classNames: [String] { archive.classNames(of: content) }

  /// What it keeps under a key, references not followed.
  public subscript(key: String) -> PropertyList? { content[key] }

  /// The object it refers to under a key; nil where there is none or it is the null object.
  public func object(_ key: String) -> ArchivedObject? { content[key]?.uid.flatMap { archive.object($0) } }

  /// The text under a key, directly or as a string object.
  public func string(_ key: String) -> String? {
    if let direct = content[key]?.string { return direct }
    return object(key)?.string
  }

  /// The whole number under a key, directly or as a number object.
  public func integer(_ key: String) -> Int64? {
    if let direct = content[key]?.integer { return direct }
    return object(key)?.content.integer
  }

  /// The truth value under a key; false where there is none, since archivers leave false ones out.
  public func boolean(_ key: String) -> Bool { content[key]?.boolean ?? object(key)?.content.boolean ?? false }

  /// The number under a key, directly or as a number object.
  public func real(_ key: String) -> Double? { content[key]?.real ?? object(key)?.content.real }

  /// The text it is: plain, or a string object (`NS.string`, or `NS.bytes` in UTF-8).
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

  /// The elements, where it is an array or a set; null elements are left out.
  public var elements: [ArchivedObject]? { references("NS.objects") }

  /// The objects of a list of references; nil where there is no such list.
  func references(_ key: String) -> [ArchivedObject]? {
    guard let list = content[key]?.array else { return nil }
    return list.compactMap { $0.uid.flatMap { archive.object($0) } }
  }

  /// The entries, where it is a dictionary with text for keys, in the order of the archive.
  ///
  /// Dictionaries with known keys (`NSKnownKeysDictionary1`), which stores keep their entities in, are read as well:
  /// their keys stand in a mapping strategy, their values in step with them, and an empty slot holds a token.
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

  /// What stands in a slot of a dictionary with known keys that has no value.
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
