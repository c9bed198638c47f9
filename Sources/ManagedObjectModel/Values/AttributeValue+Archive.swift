internal import Platform

extension AttributeValue {
  /// Reads an archived default.
  init(archived object: ArchivedObject) {
    switch object.content {
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .unsigned(let value): self = .real(Double(value))
    case .real(let value): self = .real(value)
    case .string(let value): self = .string(value)
    case .data(let value): self = .data(value)
    case .date(let value): self = .date(value)
    case .dictionary: self = Self.ofObject(object)
    case .null, .uid, .array: self = .opaque(className: "?")
    }
  }

  private static func ofObject(_ object: ArchivedObject) -> AttributeValue {
    switch object.className {
    case "NSDate": if let seconds = object.real("NS.time") { return .date(seconds) }
    case "NSString", "NSMutableString": if let text = object.string { return .string(text) }
    case "NSUUID": if let bytes = object["NS.uuidbytes"]?.data, bytes.count == 16 { return .uuid(bytes) }
    case "NSURL": if let text = object.string("NS.relative") { return .uri(text) }
    case "NSData", "NSMutableData":
      if let bytes = object["NS.data"]?.data ?? object.object("NS.data")?.content.data { return .data(bytes) }
    case "NSDecimalNumberPlaceholder", "NSDecimalNumber":
      if let number = decimal(object) { return .decimal(number.digits) }
    default: break
    }
    return .opaque(className: object.className ?? "?")
  }

  /// The mantissa has 16-bit words, lowest first; `NS.mantissa.bo` is 1 for little-endian ones.
  private static func decimal(_ object: ArchivedObject) -> DecimalNumber? {
    guard let bytes = object["NS.mantissa"]?.data, bytes.count <= 16, let exponent = object.integer("NS.exponent"),
      (-128...127).contains(exponent), let words = object.integer("NS.length"), (0...8).contains(words)
    else { return nil }
    let isLittleEndian = object.integer("NS.mantissa.bo") != 2
    var mantissa = DecimalMantissa()
    for index in (0..<min(Int(words), bytes.count / 2)).reversed() {
      let (first, second) = (UInt16(bytes[2 * index]), UInt16(bytes[2 * index + 1]))
      mantissa.append(word: isLittleEndian ? second << 8 | first : first << 8 | second)
    }
    return DecimalNumber(
      isNegative: object.boolean("NS.negative"), mantissa: mantissa, exponent: Int(exponent))
  }

  /// Converts to an attribute type, if compatible.
  func normalized(for type: AttributeType) -> AttributeValue {
    switch (type, self) {
    case (.boolean, .integer(let value)): .boolean(value != 0)
    case (.boolean, .real(let value)): .boolean(value != 0)
    case (.integer16, .boolean(let value)), (.integer32, .boolean(let value)), (.integer64, .boolean(let value)):
      .integer(value ? 1 : 0)
    case (.integer16, .real(let value)), (.integer32, .real(let value)), (.integer64, .real(let value)):
      Int64(exactly: value).map { .integer($0) } ?? self
    case (.double, .integer(let value)), (.float, .integer(let value)): .real(Double(value))
    case (.double, .boolean(let value)), (.float, .boolean(let value)): .real(value ? 1 : 0)
    case (.decimal, .integer(let value)): .decimal(String(value))
    case (.decimal, .real(let value)): DecimalNumber(value.description).map { .decimal($0.digits) } ?? self
    case (.date, .real(let value)): .date(value)
    case (.date, .integer(let value)): .date(Double(value))
    case (.uri, .string(let value)): .uri(value)
    case (.string, .uri(let value)): .string(value)
    default: self
    }
  }
}

enum ArchivedValues {
  static func add(_ value: AttributeValue, to archive: inout KeyedArchiveWriter) -> KeyedArchiveWriter.Reference {
    switch value {
    case .integer(let number): return archive.value(.integer(number))
    case .real(let number): return archive.value(.real(number))
    case .boolean(let flag): return archive.value(.boolean(flag))
    case .string(let text): return archive.string(text)
    case .data(let bytes): return archive.value(.data(bytes))
    case .date(let seconds):
      return archive.add(classes: ["NSDate", "NSObject"], ["NS.time": .real(seconds)])
    case .uuid(let bytes):
      return archive.add(classes: ["NSUUID", "NSObject"], ["NS.uuidbytes": .data(bytes)])
    case .uri(let text):
      let relative = archive.string(text)
      return archive.add(
        classes: ["NSURL", "NSObject"],
        ["NS.base": KeyedArchiveWriter.Reference.null.value, "NS.relative": relative.value])
    case .decimal(let digits):
      guard let number = DecimalNumber(digits) else { return .null }
      return add(number, to: &archive)
    case .opaque: return .null
    }
  }

  private static func add(
    _ number: DecimalNumber, to archive: inout KeyedArchiveWriter
  ) -> KeyedArchiveWriter.Reference {
    return archive.add(
      classes: ["NSDecimalNumberPlaceholder", "NSDecimalNumber", "NSNumber", "NSValue", "NSObject"],
      [
        "NS.mantissa": .data(number.mantissa.bytes), "NS.mantissa.bo": .integer(1),
        "NS.length": .integer(Int64((number.mantissa.bitCount + 15) / 16)),
        "NS.exponent": .integer(Int64(number.exponent)), "NS.negative": .boolean(number.isNegative),
        "NS.compact": .boolean(false),
      ])
  }
}
