public import StoreFiles

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
