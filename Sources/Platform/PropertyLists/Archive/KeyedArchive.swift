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
  /// - Throws: `PropertyListError`; `foreign-archive` for the XML archives of other systems.
  public init(_ bytes: [UInt8], limits: PropertyListLimits = .standard) throws(PropertyListError) {
    guard BinaryPropertyListReader.recognizes(bytes) else { throw Self.foreignOrUnknown(bytes) }
    let list = try PropertyList(binary: bytes, limits: limits)
    guard let objects = list["$objects"]?.array, let top = list["$top"]?.dictionary else {
      throw PropertyListError(.notAnArchive, operation: "read the archive", detail: "it is a plain property list")
    }
    guard list["$archiver"]?.string == "NSKeyedArchiver" else {
      throw PropertyListError(
        .foreignArchive, operation: "read the archive", detail: "it was not written by NSKeyedArchiver")
    }
    guard let root = (top["root"] ?? top["$0"])?.uid, root < UInt64(objects.count) else {
      throw PropertyListError(.damaged, operation: "read the archive", detail: "it names no root object")
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

  private static func foreignOrUnknown(_ bytes: [UInt8]) -> PropertyListError {
    if XMLTree.looksLikeXML(bytes), contains(bytes, "CF$UID") || contains(bytes, "$objects") {
      return PropertyListError(
        .foreignArchive, operation: "read the archive",
        detail: "it is an XML archive, as GNUstep writes them, not one of Apple's")
    }
    return PropertyListError(.notAnArchive, operation: "read the archive", detail: "it is no binary property list")
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
