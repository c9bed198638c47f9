internal import SQLiteFormat

/// The classes of values, as bits of a set.
///
/// Each value that is written is looked at by it, in the module above too, so that all of it can be inlined there.
package struct StorageClasses: OptionSet {
  package let rawValue: UInt8

  @inlinable package static var null: StorageClasses { StorageClasses(rawValue: 1) }
  @inlinable package static var integer: StorageClasses { StorageClasses(rawValue: 2) }
  @inlinable package static var real: StorageClasses { StorageClasses(rawValue: 4) }
  @inlinable package static var text: StorageClasses { StorageClasses(rawValue: 8) }
  @inlinable package static var blob: StorageClasses { StorageClasses(rawValue: 16) }
  @inlinable package static var any: StorageClasses { StorageClasses(rawValue: 31) }

  /// The class that a serial type stands for; empty for the two that are never in a file.
  @inlinable
  @inline(__always)
  package init(serialType code: Int64) {
    if code >= 12 {
      self.init(rawValue: code & 1 == 0 ? 16 : 8)
    } else if code == 0 {
      self.init(rawValue: 1)
    } else if code == 7 {
      self.init(rawValue: 4)
    } else if code == 10 || code == 11 || code < 0 {
      self.init(rawValue: 0)
    } else {
      self.init(rawValue: 2)
    }
  }

  @inlinable
  package init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// What the records of one table or index look like.
struct RecordShape {
  /// What a field of the record may hold, and what it usually holds.
  struct Field {
    var allowed: StorageClasses
    var usual: StorageClasses
  }

  /// The fields in the order of the record.
  var fields: [Field]

  /// The fewest fields that a record can have: columns that were added later are missing in old records.
  var minimumFields: Int

  /// The entity numbers that may stand in the second field, in Core Data's tables.
  var entityNumbers: ClosedRange<Int64>?

  /// Whether fields hold only what the types of their columns say, as Core Data sees to.
  var isStrict = false

  /// Whether no field has a type, so that anything fits.
  var isUntyped: Bool { fields.allSatisfy { $0.usual == .any || $0.usual == [.null] } }

  /// How a record compares with a shape.
  struct Fit {
    /// The bytes of the record as its header has them.
    var length: Int

    /// The fields of the record.
    var fields: Int

    /// How many fields hold a value of the usual class that is not NULL; fields for any class do not count.
    var usual: Int

    /// How many fields hold a value of another class.
    var unusual: Int
  }

  /// Compares the record that begins at an offset; nil where it cannot be one of this shape.
  ///
  /// - Parameters:
  ///   - end: where the bytes of the record that are at hand end.
  ///   - length: the bytes of the whole record; nil where that is not known.
  @inline(__always)
  func fit(_ bytes: Span<UInt8>, at start: Int, before end: Int, length: Int?) -> Fit? {
    var offset = start
    guard let headerLength = Varint.read(bytes, at: &offset, before: end), headerLength > 0,
      headerLength <= Int64(end &- start)
    else { return nil }
    let headerEnd = start &+ Int(headerLength)
    var body = headerEnd
    var fit = Fit(length: 0, fields: 0, usual: 0, unusual: 0)
    let fieldCount = fields.count
    while offset < headerEnd {
      guard fit.fields < fieldCount, let code = Varint.read(bytes, at: &offset, before: headerEnd),
        let width = SerialType.length(of: code), width <= Cell.maximumPayloadLength
      else { return nil }
      let field = fields[fit.fields]
      let storage = StorageClasses(serialType: code)
      guard field.allowed.contains(storage) else { return nil }
      if !field.usual.contains(storage) {
        fit.unusual &+= 1
      } else if storage.rawValue != 1, field.usual.rawValue != StorageClasses.any.rawValue {
        fit.usual &+= 1
      }
      if fit.fields == 1, let entityNumbers {
        guard storage.rawValue == 2, let number = Self.integer(code, bytes, at: body, before: end),
          entityNumbers.contains(number)
        else { return nil }
      }
      body &+= width
      fit.fields &+= 1
    }
    guard fit.fields >= minimumFields else { return nil }
    fit.length = body &- start
    if let length, length != fit.length { return nil }
    return fit
  }

  /// Whether the record of a cell would fit but for its entity number, which is none of the table's.
  func fitsButForEntity(_ bytes: Span<UInt8>, _ cell: LeafCell) -> Bool {
    guard entityNumbers != nil else { return false }
    var shape = self
    shape.entityNumbers = nil
    let fit = shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length)
    return fit.map { $0.unusual == 0 && $0.fields >= 3 } ?? false
  }

  /// The number in the second field of a cell's record; nil where that is no number.
  func entityNumber(_ bytes: Span<UInt8>, _ cell: LeafCell) -> Int64? {
    let end = cell.payload &+ cell.local
    var offset = cell.payload
    guard let headerLength = Varint.read(bytes, at: &offset, before: end), headerLength > 0,
      headerLength <= Int64(cell.local), let first = Varint.read(bytes, at: &offset, before: end),
      let width = SerialType.length(of: first), width <= cell.local,
      let code = Varint.read(bytes, at: &offset, before: end), StorageClasses(serialType: code) == .integer
    else { return nil }
    return Self.integer(code, bytes, at: cell.payload &+ Int(headerLength) &+ width, before: end)
  }

  /// The integer of a serial type; nil where it is not at hand.
  @inline(__always)
  static func integer(_ code: Int64, _ bytes: Span<UInt8>, at offset: Int, before end: Int) -> Int64? {
    switch code {
    case 8: return 0
    case 9: return 1
    default:
      guard let width = SerialType.length(of: code), offset + width <= end else { return nil }
      return bytes.signedInteger(at: offset, length: width)
    }
  }
}
