/// A keyed archive: an object graph in a binary property list, as of Apple's `NSKeyedArchiver`.
///
/// No object is instantiated: references are followed one at a time, so cycles are harmless if the reader counts its
/// steps.
public struct KeyedArchive: Sendable {
  /// The objects by number; number 0 is the text `$null`.
  public let objects: [PropertyList]

  /// The root object's number.
  public let rootNumber: Int

  /// Reads an archive.
  ///
  /// - Throws: `FileError`; `foreign-archive` for the XML archives of other systems.
  public init(_ bytes: [UInt8]) throws(FileError) {
    guard BinaryPropertyListReader.recognizes(bytes) else { throw Self.foreignOrUnknown(bytes) }
    let list = try PropertyList(binary: bytes)
    guard let objects = list["$objects"]?.array, let top = list["$top"]?.dictionary else {
      throw FileError(.notAKeyedArchive, operation: "read the archive", detail: "it is a plain property list")
    }
    guard list["$archiver"]?.string == "NSKeyedArchiver" else {
      throw FileError(
        .foreignKeyedArchive, operation: "read the archive", detail: "it was not written by NSKeyedArchiver")
    }
    guard let root = (top["root"] ?? top["$0"])?.uid, root < UInt64(objects.count) else {
      throw FileError(.propertyListDamaged, operation: "read the archive", detail: "it names no root object")
    }
    self.objects = objects
    rootNumber = Int(root)
  }

  /// The root object.
  public var root: ArchivedObject { ArchivedObject(archive: self, number: rootNumber) }

  func object(_ number: UInt64) -> ArchivedObject? {
    guard number > 0, number < UInt64(objects.count) else { return nil }
    return ArchivedObject(archive: self, number: Int(number))
  }

  private static func foreignOrUnknown(_ bytes: [UInt8]) -> FileError {
    if XMLTree.looksLikeXML(bytes), contains(bytes, "CF$UID") || contains(bytes, "$objects") {
      return FileError(
        .foreignKeyedArchive, operation: "read the archive",
        detail: "it is an XML archive, as GNUstep writes them, not one of Apple's")
    }
    return FileError(.notAKeyedArchive, operation: "read the archive", detail: "it is no binary property list")
  }

  private static func contains(_ bytes: [UInt8], _ word: String) -> Bool {
    let word = Array(word.utf8)
    guard let first = word.first, bytes.count >= word.count else { return false }
    for start in 0...(bytes.count - word.count) where bytes[start] == first {
      if bytes[start..<start + word.count].elementsEqual(word) { return true }
    }
    return false
  }
}

/// An object of a keyed archive, or a plain value.
public struct ArchivedObject: Sendable {
  let archive: KeyedArchive

  /// Its number in the archive, for recognizing it again.
  public let number: Int

  /// Its encoded value.
  public var content: PropertyList { archive.objects[number] }

  /// Its class name; nil for plain text, numbers and data.
  public var className: String? { classDescription?["$classname"]?.string }

  /// Its class and ancestors, in this order.
  public var classNames: [String] {
    if let names = classDescription?["$classes"]?.array { return names.compactMap(\.string) }
    return className.map { [$0] } ?? []
  }

  private var classDescription: PropertyList? { content["$class"]?.uid.flatMap { archive.object($0) }?.content }

  /// Returns the value of a key, without following references.
  public subscript(key: String) -> PropertyList? { content[key] }

  /// Returns the referenced object of a key; nil if missing or null.
  public func object(_ key: String) -> ArchivedObject? { content[key]?.uid.flatMap { archive.object($0) } }

  /// Returns the text of a key, plain or as a string object.
  public func string(_ key: String) -> String? { content[key]?.string ?? object(key)?.string }

  /// Returns the integer of a key, plain or as a number object.
  public func integer(_ key: String) -> Int64? { content[key]?.integer ?? object(key)?.content.integer }

  /// Returns the Boolean of a key; false if missing, since archivers omit false.
  public func boolean(_ key: String) -> Bool { content[key]?.boolean ?? object(key)?.content.boolean ?? false }

  /// Returns the number of a key, plain or as a number object.
  public func real(_ key: String) -> Double? { content[key]?.real ?? object(key)?.content.real }

  /// Its text: plain, or a string object (`NS.string`, or `NS.bytes` in UTF-8).
  public var string: String? {
    let text = content["NS.string"]
    if let plain = content.string ?? text?.string { return plain }
    if let number = text?.uid { return archive.object(number)?.content.string }
    return content["NS.bytes"]?.data.flatMap { String(utf8: $0) }
  }

  /// The elements of an array or set, without nulls.
  public var elements: [ArchivedObject]? { references("NS.objects") }

  func references(_ key: String) -> [ArchivedObject]? {
    content[key]?.array?.compactMap { $0.uid.flatMap { archive.object($0) } }
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
    zip(keys, values).compactMap { key, value in
      guard let name = key.uid.flatMap({ archive.object($0) })?.string,
        let object = value.uid.flatMap({ archive.object($0) })
      else { return nil }
      return (name, object)
    }
  }
}

/// Writes a keyed archive in the layout of Apple's `NSKeyedArchiver`.
///
/// Objects are reserved, then defined, to allow cycles.
public struct KeyedArchiveWriter: Sendable {
  /// A reference to an object in the making.
  public struct Reference: Sendable, Hashable {
    let number: Int

    /// The null object.
    public static let null = Reference(number: 0)

    /// The reference as a field's value.
    public var value: PropertyList { .uid(UInt64(number)) }
  }

  private var objects: [PropertyList] = [.string("$null")]
  private var classes: [[String]: Reference] = [:]
  private var plain: [PropertyList: Reference] = [:]
  private var strings: [[UInt8]: Reference] = [:]

  /// Makes an empty archive.
  public init() {}

  /// Reserves an object to define later.
  public mutating func reserve() -> Reference {
    objects.append(.string("$null"))
    return Reference(number: objects.count - 1)
  }

  /// Defines a reserved object; `classes` begins with its own class, then the ancestors.
  public mutating func define(_ reference: Reference, classes: [String], _ fields: [String: PropertyList]) {
    var fields = fields
    fields["$class"] = classReference(classes).value
    objects[reference.number] = .dictionary(fields)
  }

  /// Adds an object.
  public mutating func add(classes: [String], _ fields: [String: PropertyList]) -> Reference {
    let reference = reserve()
    define(reference, classes: classes, fields)
    return reference
  }

  /// Adds a text object, shared between equal texts; null for nil.
  public mutating func string(_ text: String?) -> Reference {
    guard let text else { return .null }
    let key = Array(text.utf8)
    if let known = strings[key] { return known }
    let reference = reserve()
    objects[reference.number] = .string(text)
    strings[key] = reference
    return reference
  }

  /// Adds a number, Boolean or data object.
  public mutating func value(_ value: PropertyList) -> Reference {
    if let known = plain[value] { return known }
    let reference = reserve()
    objects[reference.number] = value
    plain[value] = reference
    return reference
  }

  /// Adds an array object.
  public mutating func array(_ elements: [Reference], isMutable: Bool = false) -> Reference {
    add(
      classes: isMutable ? ["NSMutableArray", "NSArray", "NSObject"] : ["NSArray", "NSObject"],
      ["NS.objects": .array(elements.map(\.value))])
  }

  /// Adds a set object.
  public mutating func set(_ elements: [Reference]) -> Reference {
    add(classes: ["NSSet", "NSObject"], ["NS.objects": .array(elements.map(\.value))])
  }

  /// Adds a dictionary object with text keys, in the given order.
  public mutating func dictionary(_ entries: [(String, Reference)], isMutable: Bool = false) -> Reference {
    let keys = entries.map { string($0.0).value }
    return add(
      classes: isMutable ? ["NSMutableDictionary", "NSDictionary", "NSObject"] : ["NSDictionary", "NSObject"],
      ["NS.keys": .array(keys), "NS.objects": .array(entries.map(\.1.value))])
  }

  /// Adds a dictionary with known keys, in which stores keep their model's entities.
  public mutating func knownKeysDictionary(_ entries: [(String, Reference)]) -> Reference {
    let keys = array(entries.map { string($0.0) })
    let mapping = add(
      classes: ["NSKnownKeysMappingStrategy1", "NSKnownKeysMappingStrategy", "NSObject"],
      ["keys": keys.value, "length": .integer(Int64(entries.count)), "version": .integer(1)])
    let values = array(entries.map(\.1))
    let token = string(ArchivedObject.emptySlotToken)
    return add(
      classes: ["NSKnownKeysDictionary1", "NSKnownKeysDictionary", "NSMutableDictionary", "NSDictionary", "NSObject"],
      ["searchMapping": mapping.value, "values": values.value, "emptyToken": token.value, "version": .integer(1)])
  }

  /// Returns the archive as a property list.
  public func archive(root: Reference) -> PropertyList {
    .dictionary([
      "$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver"),
      "$top": .dictionary(["root": root.value]), "$objects": .array(objects),
    ])
  }

  /// Returns the archive as a binary property list.
  public func bytes(root: Reference) throws(FileError) -> [UInt8] { try archive(root: root).binaryBytes() }

  private mutating func classReference(_ names: [String]) -> Reference {
    if let known = classes[names] { return known }
    let reference = reserve()
    objects[reference.number] = .dictionary([
      "$classname": .string(names.first ?? "NSObject"), "$classes": .array(names.map { .string($0) }),
    ])
    classes[names] = reference
    return reference
  }
}
