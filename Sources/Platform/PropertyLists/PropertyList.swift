internal import Foundation

/// A property list: the tree of plain values that Apple's systems keep settings, metadata and archives in.
public indirect enum PropertyList: Sendable, Hashable {
  case null
  case boolean(Bool)

  case integer(Int64)

  /// A whole number above `Int64.max`; smaller ones are always an `integer`.
  case unsigned(UInt64)
  case real(Double)

  /// Seconds since 2001-01-01T00:00:00Z.
  case date(Double)
  case string(String)
  case data([UInt8])

  /// A reference to an object of a keyed archive; only binary property lists have it.
  case uid(UInt64)
  case array([PropertyList])
  case dictionary([String: PropertyList])
}

extension PropertyList {
  /// The text, where it is text.
  public var string: String? {
    if case .string(let value) = self { value } else { nil }
  }

  /// The whole number, where it is one that fits, or a truth value as 0 or 1.
  public var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .boolean(let value): value ? 1 : 0
    case .real(let value): Int64(exactly: value)
    case .null, .unsigned, .date, .string, .data, .uid, .array, .dictionary: nil
    }
  }

  /// The truth value, where it is one, or a number that stands for one.
  public var boolean: Bool? {
    switch self {
    case .boolean(let value): value
    case .integer(let value): value != 0
    case .null, .unsigned, .real, .date, .string, .data, .uid, .array, .dictionary: nil
    }
  }

  /// The number, where it is one.
  public var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .unsigned(let value): Double(value)
    case .null, .boolean, .date, .string, .data, .uid, .array, .dictionary: nil
    }
  }

  /// The bytes, where it is data.
  public var data: [UInt8]? {
    if case .data(let value) = self { value } else { nil }
  }

  /// The number of the object it refers to, where it is a reference.
  public var uid: UInt64? {
    if case .uid(let value) = self { value } else { nil }
  }

  /// The elements, where it is an array.
  public var array: [PropertyList]? {
    if case .array(let value) = self { value } else { nil }
  }

  /// The entries, where it is a dictionary.
  public var dictionary: [String: PropertyList]? {
    if case .dictionary(let value) = self { value } else { nil }
  }

  /// The value of a key, where it is a dictionary that has it.
  public subscript(key: String) -> PropertyList? { dictionary?[key] }
}

extension PropertyList {
  /// Reads a property list, binary or XML, whichever it is.
  ///
  /// - Throws: `PropertyListError` where it is neither, is damaged or is beyond the limits.
  public init(_ bytes: [UInt8], limits: PropertyListLimits = .standard) throws(PropertyListError) {
    if BinaryPropertyListReader.recognizes(bytes) {
      self = try PropertyList(binary: bytes, limits: limits)
    } else if XMLTree.looksLikeXML(bytes) {
      self = try PropertyList(xml: bytes, limits: limits)
    } else {
      throw PropertyListError(
        .notAPropertyList, detail: "it begins neither like a binary property list nor like an XML one")
    }
  }

  /// Reads a binary property list (`bplist00`).
  ///
  /// The format is Core Foundation's: a magic word, the objects, a table of their offsets, and a trailer of 32 bytes.
  /// Every offset, size and reference is checked against the bytes that are really there; an honest list uses no byte
  /// twice, so that the objects together can never be larger than the list itself.
  public init(binary bytes: [UInt8], limits: PropertyListLimits = .standard) throws(PropertyListError) {
    var reader = try BinaryPropertyListReader(bytes, limits: limits)
    self = try reader.readTop()
  }
}

extension PropertyList {
  /// Reads an XML property list.
  ///
  /// The usual document type line is let through and what it points to is never loaded.
  ///
  /// - Throws: `PropertyListError` where it is not well formed, no property list, or beyond the limits.
  public init(xml bytes: [UInt8], limits: PropertyListLimits = .standard) throws(PropertyListError) {
    var xmlLimits = XMLTree.Limits.standard
    xmlLimits.maximumBytes = min(limits.maximumBytes, xmlLimits.maximumBytes)
    xmlLimits.maximumElements = min(limits.maximumNodes, xmlLimits.maximumElements)
    let root = try XMLTree(bytes, allowing: .propertyList, limits: xmlLimits).root
    guard root.name == "plist" else {
      throw PropertyListError(.notAPropertyList, detail: "its outermost element is not <plist>")
    }
    guard root.children.count == 1, let value = root.children.first else {
      throw PropertyListError(.damaged, detail: "<plist> does not hold exactly one value")
    }
    self = try PropertyList(element: value)
  }

  /// The value of an element; the tree's own depth bounds how deep this goes.
  private init(element: XMLTree.Element) throws(PropertyListError) {
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
        throw PropertyListError(.damaged, detail: "an <integer> is no whole number")
      }
    case "real":
      guard let number = Double(text.trimmed) else {
        throw PropertyListError(.damaged, detail: "a <real> is no number")
      }
      self = .real(number)
    case "date":
      guard let date = try? Date(text.trimmed, strategy: .iso8601) else {
        throw PropertyListError(.damaged, detail: "a <date> is no date")
      }
      self = .date(date.timeIntervalSinceReferenceDate)
    case "data":
      guard let data = Data(base64Encoded: text.filter { !$0.isWhitespace }) else {
        throw PropertyListError(.damaged, detail: "<data> is not in base 64")
      }
      self = .data(Array(data))
    case "array":
      var elements: [PropertyList] = []
      for child in element.children { elements.append(try PropertyList(element: child)) }
      self = .array(elements)
    case "dict": self = try .dictionary(Self.entries(of: element))
    default: throw PropertyListError(.damaged, detail: "it holds an element that property lists do not have")
    }
  }

  private static func entries(of element: XMLTree.Element) throws(PropertyListError) -> [String: PropertyList] {
    guard element.children.count.isMultiple(of: 2) else {
      throw PropertyListError(.damaged, detail: "a <dict> has a key without a value")
    }
    var entries: [String: PropertyList] = [:]
    for index in stride(from: 0, to: element.children.count, by: 2) {
      guard element.children[index].name == "key" else {
        throw PropertyListError(.damaged, detail: "a <dict> has a value without a key")
      }
      let value = try PropertyList(element: element.children[index + 1])
      guard entries.updateValue(value, forKey: element.children[index].text) == nil else {
        throw PropertyListError(.damaged, detail: "a <dict> has the same key twice")
      }
    }
    return entries
  }
}

extension String {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}

/// How large a property list may become in memory, whatever its bytes promise.
public struct PropertyListLimits: Sendable, Hashable {
  /// The largest number of bytes read.
  public var maximumBytes: Int

  /// The deepest nesting of arrays and dictionaries.
  public var maximumDepth: Int

  /// The largest number of values when every shared value is counted each time it is referred to.
  public var maximumNodes: Int

  /// Limits that every honest property list of a store or a model stays far below.
  public static let standard = PropertyListLimits(
    maximumBytes: 64 << 20, maximumDepth: 96, maximumNodes: 2_000_000)

  /// Limits of one's own; a depth above 200 is cut to 200, which the stack of any thread bears.
  public init(maximumBytes: Int, maximumDepth: Int, maximumNodes: Int) {
    self.maximumBytes = maximumBytes
    self.maximumDepth = min(maximumDepth, 200)
    self.maximumNodes = maximumNodes
  }
}

/// A property list, an archive or an XML document that cannot be read.
public typealias PropertyListError = Failure<PropertyListErrorKind>

/// Why a property list, an archive or an XML document cannot be read.
public enum PropertyListErrorKind: String, FailureKind {
  /// The bytes are not of the format at all.
  case notAPropertyList = "not-a-property-list"

  /// The format is right and its content is damaged.
  case damaged = "property-list-damaged"

  /// It is larger or deeper than anything honest.
  case tooLarge = "property-list-too-large"

  /// The XML is not well formed.
  case malformedXML = "xml-malformed"

  /// The XML declares a document type or entities, which could make it expand without end or read other files.
  case forbiddenXML = "xml-forbidden-declaration"

  /// The XML is larger or deeper than anything honest.
  case xmlTooLarge = "xml-too-large"

  /// The property list is not a keyed archive.
  case notAnArchive = "not-a-keyed-archive"

  /// A keyed archive written by something else than Apple's archiver.
  case foreignArchive = "foreign-archive"

  /// A value that binary property lists cannot hold.
  case unwritable = "property-list-unwritable"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "read the property list"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .notAPropertyList, .notAnArchive: "Check that it is the right file."
    case .damaged, .malformedXML: "Take the file from a backup or build it again."
    case .tooLarge, .xmlTooLarge: "Check that it is the right file; no real one is that large."
    case .forbiddenXML: "Save the file again with Xcode; its files declare no entities."
    case .foreignArchive: "Compile the model with Xcode's momc, or name the model's source."
    case .unwritable: "Leave the value out."
    }
  }
}
