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
  public mutating func set(_ elements: [Reference], isMutable: Bool = false) -> Reference {
    add(
      classes: isMutable ? ["NSMutableSet", "NSSet", "NSObject"] : ["NSSet", "NSObject"],
      ["NS.objects": .array(elements.map(\.value))])
  }

  /// Adds a dictionary object with text keys, in the given order.
  public mutating func dictionary(_ entries: [(String, Reference)], isMutable: Bool = false) -> Reference {
    let keys = entries.map { string($0.0).value }
    return add(
      classes: isMutable
        ? ["NSMutableDictionary", "NSDictionary", "NSObject"] : ["NSDictionary", "NSObject"],
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
      classes: [
        "NSKnownKeysDictionary1", "NSKnownKeysDictionary", "NSMutableDictionary", "NSDictionary", "NSObject",
      ],
      [
        "searchMapping": mapping.value, "values": values.value, "emptyToken": token.value, "version": .integer(1),
      ])
  }

  /// Returns the archive as a property list.
  public func archive(root: Reference) -> PropertyList {
    .dictionary([
      "$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver"),
      "$top": .dictionary(["root": root.value]), "$objects": .array(objects),
    ])
  }

  /// Returns the archive as a binary property list.
  public func bytes(root: Reference) throws(PropertyListError) -> [UInt8] { try archive(root: root).binaryBytes() }

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
