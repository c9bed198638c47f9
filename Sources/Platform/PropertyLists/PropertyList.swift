internal import Foundation

/// A property list value.
public indirect enum PropertyList: Sendable, Hashable {
  case null
  case boolean(Bool)

  case integer(Int64)

  /// An integer above `Int64.max`; smaller ones are an `integer`.
  case unsigned(UInt64)
  case real(Double)

  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  case string(String)
  case data([UInt8])

  /// A reference in a keyed archive; only in binary property lists.
  case uid(UInt64)
  case array([PropertyList])
  case dictionary([String: PropertyList])

  /// The text.
  public var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The integer, if it fits, or a Boolean as 0 or 1.
  public var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .boolean(let value): value ? 1 : 0
    case .real(let value): Int64(exactly: value)
    case .null, .unsigned, .date, .string, .data, .uid, .array, .dictionary: nil
    }
  }

  /// The Boolean, or a number as one.
  public var boolean: Bool? {
    switch self {
    case .boolean(let value): value
    case .integer(let value): value != 0
    case .null, .unsigned, .real, .date, .string, .data, .uid, .array, .dictionary: nil
    }
  }

  /// The number.
  public var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .null, .boolean, .date, .string, .data, .uid, .array, .dictionary: nil
    }
  }

  /// The bytes of data.
  public var data: [UInt8]? { if case .data(let value) = self { value } else { nil } }

  /// The number of the referenced object.
  public var uid: UInt64? { if case .uid(let value) = self { value } else { nil } }

  /// The elements of an array.
  public var array: [PropertyList]? { if case .array(let value) = self { value } else { nil } }

  /// The entries of a dictionary.
  public var dictionary: [String: PropertyList]? { if case .dictionary(let value) = self { value } else { nil } }

  /// Returns the value of a dictionary's key.
  public subscript(key: String) -> PropertyList? { dictionary?[key] }

  /// Reads a binary or XML property list.
  ///
  /// - Throws: `FileError` if it is neither, damaged or beyond the limits.
  public init(_ bytes: [UInt8]) throws(FileError) {
    if BinaryPropertyListReader.recognizes(bytes) {
      self = try PropertyList(binary: bytes)
    } else if XMLTree.looksLikeXML(bytes) {
      self = try PropertyList(xml: bytes)
    } else {
      throw FileError(.notAPropertyList, "it begins neither like a binary property list nor like an XML one")
    }
  }

  /// Reads a binary property list (`bplist00`).
  ///
  /// Core Foundation's format: a magic word, objects, their offset table, and a trailer of 32 bytes. Every offset, size
  /// and reference is checked; no byte may be used twice, so the objects cannot exceed the list's size.
  public init(binary bytes: [UInt8]) throws(FileError) {
    var reader = try BinaryPropertyListReader(bytes)
    self = try reader.readTop()
  }

  /// Reads an XML property list.
  ///
  /// The usual document type line is allowed; its target is never loaded.
  ///
  /// - Throws: `FileError` if it is malformed, no property list or beyond the limits.
  public init(xml bytes: [UInt8]) throws(FileError) {
    let root = try XMLTree(bytes, allowing: .propertyList).root
    guard root.name == "plist" else { throw FileError(.notAPropertyList, "its outermost element is not <plist>") }
    guard root.children.count == 1, let value = root.children.first else {
      throw .damagedList("<plist> does not hold exactly one value")
    }
    self = try PropertyList(element: value)
  }

  /// Converts an element; the tree's depth bounds the recursion.
  private init(element: XMLTree.Element) throws(FileError) {
    let text = element.text
    switch element.name {
    case "string": self = .string(text)
    case "true": self = .boolean(true)
    case "false": self = .boolean(false)
    case "integer":
      let digits = text.trimmed
      if let number = Int64(digits) {
        self = .integer(number)
      } else if let number = UInt64(digits) {
        self = .unsigned(number)
      } else {
        throw .damagedList("an <integer> is no whole number")
      }
    case "real":
      guard let number = Double(text.trimmed) else { throw .damagedList("a <real> is no number") }
      self = .real(number)
    case "date":
      guard let date = try? Date(text.trimmed, strategy: .iso8601) else { throw .damagedList("a <date> is no date") }
      self = .date(date.timeIntervalSinceReferenceDate)
    case "data":
      guard let data = Data(base64Encoded: text.filter { !$0.isWhitespace }) else {
        throw .damagedList("<data> is not in base 64")
      }
      self = .data(Array(data))
    case "array":
      self = .array(try element.children.map { (child) throws(FileError) in try PropertyList(element: child) })
    case "dict": self = try .dictionary(Self.entries(of: element))
    default: throw .damagedList("it holds an element that property lists do not have")
    }
  }

  private static func entries(of element: XMLTree.Element) throws(FileError) -> [String: PropertyList] {
    guard element.children.count.isMultiple(of: 2) else { throw .damagedList("a <dict> has a key without a value") }
    var entries: [String: PropertyList] = [:]
    for index in stride(from: 0, to: element.children.count, by: 2) {
      guard element.children[index].name == "key" else { throw .damagedList("a <dict> has a value without a key") }
      let value = try PropertyList(element: element.children[index + 1])
      guard entries.updateValue(value, forKey: element.children[index].text) == nil else {
        throw .damagedList("a <dict> has the same key twice")
      }
    }
    return entries
  }
}

extension String { fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) } }

extension FileError {
  static func damagedList(_ detail: String) -> FileError { FileError(.propertyListDamaged, detail) }
}
