struct BinaryPropertyListReader {
  private let bytes: [UInt8]
  private let offsetSize: Int
  private let referenceSize: Int
  private let objectCount: Int
  private let topObject: Int
  private let offsetTable: Int

  private var finished: [Finished?]

  /// The ancestors of the current object; meeting one again is a cycle.
  private var isOpen: [Bool]

  /// The bytes left before some byte must have been read twice.
  private var unreadBytes: Int

  private struct Finished {
    var value: PropertyList
    var nodes: Int
    var depth: Int
  }

  // Far above legitimate stores and models.
  private static let maximumBytes = 64 << 20
  private static let maximumDepth = 96

  /// A shared value counts at each reference.
  private static let maximumNodes = 2_000_000

  private static let magic: [UInt8] = Array("bplist0".utf8)
  private static let trailerSize = 32

  static func recognizes(_ bytes: [UInt8]) -> Bool { bytes.starts(with: magic) }

  init(_ bytes: [UInt8]) throws(FileError) {
    guard Self.recognizes(bytes) else { throw FileError(.notAPropertyList, "it does not begin with bplist00") }
    guard bytes.count <= Self.maximumBytes else {
      throw FileError(
        .propertyListTooLarge, detail: "it has \(bytes.count) bytes, and \(Self.maximumBytes) are accepted")
    }
    guard bytes.count >= 8 + 1 + 1 + Self.trailerSize else { throw .damagedList("it is cut off: \(bytes.count) bytes") }
    let body = bytes.count - Self.trailerSize
    self.bytes = bytes
    offsetSize = Int(bytes[body + 6])
    referenceSize = Int(bytes[body + 7])
    let count = Self.bigEndian(bytes, at: body + 8, size: 8)
    let top = Self.bigEndian(bytes, at: body + 16, size: 8)
    let table = Self.bigEndian(bytes, at: body + 24, size: 8)
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else {
      throw .damagedList("its trailer gives impossible sizes of offsets or references")
    }
    guard table >= 9, table < UInt64(body), count >= 1, count <= (UInt64(body) - table) / UInt64(offsetSize) else {
      throw .damagedList("its trailer promises more objects than there are bytes")
    }
    guard count <= table, top < count else { throw .damagedList("its trailer names a top object that is not there") }
    guard count <= UInt64(Self.maximumNodes) else {
      throw FileError(.propertyListTooLarge, "it holds more than \(Self.maximumNodes) objects")
    }
    objectCount = Int(count)
    topObject = Int(top)
    offsetTable = Int(table)
    finished = Array(repeating: nil, count: objectCount)
    isOpen = Array(repeating: false, count: objectCount)
    unreadBytes = offsetTable
  }

  mutating func readTop() throws(FileError) -> PropertyList { try read(topObject, depth: 0).value }

  private static func bigEndian(_ bytes: [UInt8], at offset: Int, size: Int) -> UInt64 {
    var value: UInt64 = 0
    for byte in bytes[offset..<offset + size] { value = value << 8 | UInt64(byte) }
    return value
  }

  private mutating func read(_ number: Int, depth: Int) throws(FileError) -> Finished {
    if let known = finished[number] {
      try check(depth: depth + known.depth, nodes: known.nodes)
      return known
    }
    guard !isOpen[number] else { throw .damagedList("object \(number) contains itself") }
    try check(depth: depth, nodes: 1)
    isOpen[number] = true
    let result = try readNew(number, depth: depth)
    isOpen[number] = false
    finished[number] = result
    return result
  }

  private func check(depth: Int, nodes: Int) throws(FileError) {
    guard depth <= Self.maximumDepth else {
      throw FileError(.propertyListTooLarge, "it is nested deeper than \(Self.maximumDepth) levels")
    }
    guard nodes <= Self.maximumNodes else {
      throw FileError(.propertyListTooLarge, "it unfolds to more than \(Self.maximumNodes) values")
    }
  }

  private mutating func readNew(_ number: Int, depth: Int) throws(FileError) -> Finished {
    let offset = Self.bigEndian(bytes, at: offsetTable + number * offsetSize, size: offsetSize)
    guard offset >= 8, offset < UInt64(offsetTable) else { throw outOfPlace(number) }
    var position = Int(offset)
    let marker = bytes[position]
    position += 1
    try consume(1, of: number)
    let low = Int(marker & 0x0F)
    switch marker >> 4 {
    case 0x0:
      switch low {
      case 0: return leaf(.null)
      case 8: return leaf(.boolean(false))
      case 9: return leaf(.boolean(true))
      default: throw unknown(number, marker)
      }
    case 0x1:
      guard low <= 4 else { throw unknown(number, marker) }
      return leaf(try integer(number, at: position, size: 1 << low))
    case 0x2:
      switch low {
      case 2:
        try claim(4, at: position, of: number)
        return leaf(.real(Double(Float(bitPattern: UInt32(Self.bigEndian(bytes, at: position, size: 4))))))
      case 3:
        try claim(8, at: position, of: number)
        return leaf(.real(Double(bitPattern: Self.bigEndian(bytes, at: position, size: 8))))
      default: throw unknown(number, marker)
      }
    case 0x3:
      guard low == 3 else { throw unknown(number, marker) }
      try claim(8, at: position, of: number)
      return leaf(.date(Double(bitPattern: Self.bigEndian(bytes, at: position, size: 8))))
    case 0x4:
      let count = try length(low, number, &position, unit: 1)
      return leaf(.data(Array(bytes[position..<position + count])))
    case 0x5:
      let count = try length(low, number, &position, unit: 1)
      let text = bytes[position..<position + count]
      guard text.allSatisfy({ $0 < 0x80 }) else {
        throw .damagedList("text object \(number) is not ASCII although it says so")
      }
      return leaf(.string(String(decoding: text, as: UTF8.self)))
    case 0x6:
      let count = try length(low, number, &position, unit: 2)
      var units: [UInt16] = []
      units.reserveCapacity(count)
      for index in 0..<count {
        units.append(UInt16(bytes[position + 2 * index]) << 8 | UInt16(bytes[position + 2 * index + 1]))
      }
      return leaf(.string(String(decoding: units, as: UTF16.self)))
    case 0x8:
      guard low < 8 else { throw unknown(number, marker) }
      try claim(low + 1, at: position, of: number)
      return leaf(.uid(Self.bigEndian(bytes, at: position, size: low + 1)))
    case 0xA, 0xB, 0xC:
      let count = try length(low, number, &position, unit: referenceSize)
      return try array(number, count, at: position, depth: depth)
    case 0xD:
      let count = try length(low, number, &position, unit: 2 * referenceSize)
      return try dictionary(number, count, at: position, depth: depth)
    default: throw unknown(number, marker)
    }
  }

  private func leaf(_ value: PropertyList) -> Finished { Finished(value: value, nodes: 1, depth: 0) }

  private mutating func array(_ number: Int, _ count: Int, at position: Int, depth: Int) throws(FileError) -> Finished {
    var elements: [PropertyList] = []
    elements.reserveCapacity(count)
    var nodes = 1
    var height = 0
    for index in 0..<count {
      let element = try read(try reference(at: position, index, of: number), depth: depth + 1)
      elements.append(element.value)
      nodes += element.nodes
      height = max(height, element.depth + 1)
      try check(depth: depth + height, nodes: nodes)
    }
    return Finished(value: .array(elements), nodes: nodes, depth: height)
  }

  private mutating func dictionary(
    _ number: Int, _ count: Int, at position: Int, depth: Int
  ) throws(FileError) -> Finished {
    var entries: [String: PropertyList] = [:]
    entries.reserveCapacity(count)
    var nodes = 1
    var height = 0
    for index in 0..<count {
      let key = try read(try reference(at: position, index, of: number), depth: depth + 1)
      guard case .string(let name) = key.value else {
        throw .damagedList("a key of dictionary object \(number) is not text")
      }
      let value = try read(try reference(at: position, count + index, of: number), depth: depth + 1)
      guard entries.updateValue(value.value, forKey: name) == nil else {
        throw .damagedList("dictionary object \(number) has the same key twice")
      }
      nodes += 1 + value.nodes
      height = max(height, value.depth + 1)
      try check(depth: depth + height, nodes: nodes)
    }
    return Finished(value: .dictionary(entries), nodes: nodes, depth: height)
  }

  private func reference(at position: Int, _ index: Int, of number: Int) throws(FileError) -> Int {
    let target = Self.bigEndian(bytes, at: position + index * referenceSize, size: referenceSize)
    guard target < UInt64(objectCount) else {
      throw .damagedList("object \(number) refers to an object that is not there")
    }
    return Int(target)
  }

  private mutating func integer(_ number: Int, at position: Int, size: Int) throws(FileError) -> PropertyList {
    try claim(size, at: position, of: number)
    guard size == 16 else {
      // One, two and four bytes are unsigned, eight are signed.
      return .integer(Int64(bitPattern: Self.bigEndian(bytes, at: position, size: size)))
    }
    let high = Self.bigEndian(bytes, at: position, size: 8)
    let low = Self.bigEndian(bytes, at: position + 8, size: 8)
    let signed = Int64(bitPattern: low)
    if high == 0 { return signed >= 0 ? .integer(signed) : .unsigned(low) }
    if high == .max, signed < 0 { return .integer(signed) }
    throw .damagedList("integer object \(number) does not fit 64 bits")
  }

  /// Reads an object's length, from the marker or a following integer, and claims its bytes.
  private mutating func length(_ low: Int, _ number: Int, _ position: inout Int, unit: Int) throws(FileError) -> Int {
    var count = UInt64(low)
    if low == 0x0F {
      guard position < offsetTable, (0x10...0x13).contains(bytes[position]) else { throw outOfPlace(number) }
      let size = 1 << Int(bytes[position] & 0x0F)
      position += 1
      try claim(size, at: position, of: number)
      count = Self.bigEndian(bytes, at: position, size: size)
      position += size
    }
    guard count <= UInt64(offsetTable) else { throw outOfPlace(number) }
    try claim(Int(count) * unit, at: position, of: number)
    return Int(count)
  }

  private mutating func claim(_ size: Int, at position: Int, of number: Int) throws(FileError) {
    guard position <= offsetTable, size <= offsetTable - position else { throw outOfPlace(number) }
    try consume(size, of: number)
  }

  private mutating func consume(_ size: Int, of number: Int) throws(FileError) {
    guard size <= unreadBytes else { throw .damagedList("its objects overlap, at the latest at object \(number)") }
    unreadBytes -= size
  }

  private func outOfPlace(_ number: Int) -> FileError {
    .damagedList("object \(number) lies outside of the objects' part")
  }

  private func unknown(_ number: Int, _ marker: UInt8) -> FileError {
    .damagedList("object \(number) is of the unknown type 0x\(String(marker, radix: 16))")
  }
}
