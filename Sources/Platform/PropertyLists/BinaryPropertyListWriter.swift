struct BinaryPropertyListWriter {
  private var objects: [Object] = []
  private var numbers: [PropertyList: Int] = [:]
  private var stringNumbers: [String: Int] = [:]

  private enum Object {
    case leaf(PropertyList)
    case array([Int])
    case dictionary(keys: [Int], values: [Int])
  }

  static func bytes(of value: PropertyList) throws(FileError) -> [UInt8] {
    var writer = BinaryPropertyListWriter()
    _ = try writer.flatten(value, depth: 0)
    return writer.encode()
  }

  /// Numbers the value and its descendants in preorder, equal leaves once.
  private mutating func flatten(_ value: PropertyList, depth: Int) throws(FileError) -> Int {
    guard depth <= 200 else {
      throw FileError(
        .propertyListUnwritable, operation: "write the property list", detail: "it is nested deeper than 200 levels")
    }
    switch value {
    case .array(let elements):
      let number = reserve()
      var references: [Int] = []
      references.reserveCapacity(elements.count)
      for element in elements { references.append(try flatten(element, depth: depth + 1)) }
      objects[number] = .array(references)
      return number
    case .dictionary(let entries):
      let number = reserve()
      let names = entries.keys.sorted { $0.unicodeScalars.lexicographicallyPrecedes($1.unicodeScalars) }
      let keys = names.map { text($0) }
      var values: [Int] = []
      values.reserveCapacity(names.count)
      for name in names { values.append(try flatten(entries[name] ?? .null, depth: depth + 1)) }
      objects[number] = .dictionary(keys: keys, values: values)
      return number
    case .string(let string): return text(string)
    case .real, .date:
      // Not shared: 0.0 equals -0.0.
      return reserve(.leaf(value))
    case .null, .boolean, .integer, .unsigned, .data, .uid:
      if let known = numbers[value] { return known }
      let number = reserve(.leaf(value))
      numbers[value] = number
      return number
    }
  }

  private mutating func text(_ string: String) -> Int {
    if let known = stringNumbers[string], case .leaf(.string(let other)) = objects[known],
      other.utf8.elementsEqual(string.utf8)
    {
      return known
    }
    let number = reserve(.leaf(.string(string)))
    stringNumbers[string] = number
    return number
  }

  private mutating func reserve(_ object: Object = .leaf(.null)) -> Int {
    objects.append(object)
    return objects.count - 1
  }

  private func encode() -> [UInt8] {
    let referenceSize = Self.size(of: UInt64(objects.count))
    var out: [UInt8] = Array("bplist00".utf8)
    var offsets: [Int] = []
    offsets.reserveCapacity(objects.count)
    for object in objects {
      offsets.append(out.count)
      switch object {
      case .leaf(let value): Self.append(value, to: &out)
      case .array(let references):
        Self.appendMarker(0xA0, references.count, to: &out)
        for reference in references { Self.append(UInt64(reference), size: referenceSize, to: &out) }
      case .dictionary(let keys, let values):
        Self.appendMarker(0xD0, keys.count, to: &out)
        for reference in keys + values { Self.append(UInt64(reference), size: referenceSize, to: &out) }
      }
    }
    let table = out.count
    let offsetSize = Self.size(of: UInt64(table))
    for offset in offsets { Self.append(UInt64(offset), size: offsetSize, to: &out) }
    out += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    Self.append(UInt64(objects.count), size: 8, to: &out)
    Self.append(0, size: 8, to: &out)
    Self.append(UInt64(table), size: 8, to: &out)
    return out
  }

  private static func append(_ value: PropertyList, to out: inout [UInt8]) {
    switch value {
    case .null, .array, .dictionary: out.append(0x00)
    case .boolean(let flag): out.append(flag ? 0x09 : 0x08)
    case .integer(let number): appendInteger(number, to: &out)
    case .unsigned(let number):
      // Sixteen bytes, because eight are read as signed.
      out.append(0x14)
      append(0, size: 8, to: &out)
      append(number, size: 8, to: &out)
    case .real(let number):
      out.append(0x23)
      append(number.bitPattern, size: 8, to: &out)
    case .date(let seconds):
      out.append(0x33)
      append(seconds.bitPattern, size: 8, to: &out)
    case .data(let bytes):
      appendMarker(0x40, bytes.count, to: &out)
      out += bytes
    case .string(let string):
      if string.utf8.allSatisfy({ $0 < 0x80 }) {
        appendMarker(0x50, string.utf8.count, to: &out)
        out += string.utf8
      } else {
        appendMarker(0x60, string.utf16.count, to: &out)
        for unit in string.utf16 { append(UInt64(unit), size: 2, to: &out) }
      }
    case .uid(let number):
      let size = size(of: number)
      out.append(0x80 | UInt8(size - 1))
      append(number, size: size, to: &out)
    }
  }

  private static func appendMarker(_ kind: UInt8, _ count: Int, to out: inout [UInt8]) {
    if count < 15 {
      out.append(kind | UInt8(count))
    } else {
      out.append(kind | 0x0F)
      appendInteger(Int64(count), to: &out)
    }
  }

  private static func appendInteger(_ number: Int64, to out: inout [UInt8]) {
    let size = number < 0 ? 8 : size(of: UInt64(number))
    out.append(0x10 | UInt8(size.trailingZeroBitCount))
    append(UInt64(bitPattern: number), size: size, to: &out)
  }

  private static func append(_ number: UInt64, size: Int, to out: inout [UInt8]) {
    for shift in stride(from: (size - 1) * 8, through: 0, by: -8) {
      out.append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }

  private static func size(of number: UInt64) -> Int {
    switch number {
    case 0...0xFF: 1
    case 0...0xFFFF: 2
    case 0...0xFFFF_FFFF: 4
    default: 8
    }
  }
}

extension PropertyList {
  /// Encodes the value as a binary property list (`bplist00`).
  ///
  /// Deterministic: equal leaves are written once, keys sorted by scalars, integers minimal, text in ASCII or else
  /// UTF-16.
  public func binaryBytes() throws(FileError) -> [UInt8] { try BinaryPropertyListWriter.bytes(of: self) }
}
