public import StoreFiles

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
