internal import SQLiteFormat

extension RecordShape {
  /// How a record differs from a shape that it does not fit.
  struct Strangeness {
    /// The fields of the record.
    var fields = 0

    /// How many of them hold a value of a class that their columns are not declared for.
    var strange = 0

    /// Whether the record has more fields than the table has columns.
    var isTooLong = false

    /// Whether the entity number is none of the table's.
    var isOfUnknownEntity = false

    /// Whether a field has one of the two serial types that SQLite keeps for itself and reads as NULL.
    var hasReservedTypes = false

    /// Whether more than half of the fields are strange.
    var isMostlyStrange: Bool { strange * 2 > fields }
  }

  /// A class of values in a field where a single wrong bit of the record's header makes that class of a usual one.
  struct Flippable: Hashable {
    var field: Int

    /// The class, as the bits of a set.
    var storage: StorageClasses.RawValue
  }

  /// The same shape, but any value may stand in any field.
  func admittingAll() -> RecordShape {
    var shape = self
    for field in shape.fields.indices { shape.fields[field].allowed = .any }
    shape.minimumFields = 1
    shape.entityNumbers = nil
    return shape
  }

  /// How the record of a cell that does not fit differs from the shape; nil where the bytes are no record at all: the
  /// header cannot be read, or the lengths do not agree.
  func strangeness(_ bytes: Span<UInt8>, _ cell: LeafCell) -> Strangeness? {
    guard let types = Self.types(bytes, cell), let last = types.last,
      last.body &+ last.width &- cell.payload == cell.length
    else { return nil }
    var result = Strangeness(fields: types.count)
    result.isTooLong = types.count > fields.count
    result.hasReservedTypes = types.contains { $0.code == 10 || $0.code == 11 }
    result.strange = types.indices.count { !allows(types[$0].code, in: $0) }
    if let entityNumbers {
      result.isOfUnknownEntity = true
      if types.count > 1, StorageClasses(serialType: types[1].code) == .integer,
        let number = Self.integer(types[1].code, bytes, at: types[1].body, before: cell.payload &+ cell.local)
      {
        result.isOfUnknownEntity = !entityNumbers.contains(number)
      }
    }
    return result
  }

  /// Whether the header of a cell's record goes on on its overflow pages, and what of it is here may be that of a row.
  func hasLongHeader(_ bytes: Span<UInt8>, _ cell: LeafCell) -> Bool {
    let end = cell.payload &+ cell.local
    var offset = cell.payload
    guard cell.overflow != 0, let headerLength = Varint.read(bytes, at: &offset, before: end),
      headerLength > Int64(cell.local), headerLength <= Int64(cell.length)
    else { return false }
    var body = 0
    var count = 0
    while let code = Varint.read(bytes, at: &offset, before: end) {
      guard let width = code == 10 || code == 11 ? 0 : SerialType.length(of: code), width <= cell.length &- body,
        count < fields.count
      else { return false }
      body &+= width
      count &+= 1
    }
    return count > 0
  }

  /// Whether a field may hold a value of a serial type.
  private func allows(_ code: Int64, in field: Int) -> Bool {
    let storage = StorageClasses(serialType: code)
    return field < fields.count && !storage.isEmpty && fields[field].allowed.contains(storage)
  }

  /// The strange values of a record that a single wrong bit in its header may have made of usual ones: text and binary
  /// data differ in one bit there, and so do integers and decimal numbers of eight bytes.
  func flippable(_ bytes: Span<UInt8>, _ cell: LeafCell) -> [Flippable] {
    guard let types = Self.types(bytes, cell) else { return [] }
    return types.indices.compactMap { field in
      let (code, width) = (types[field].code, types[field].width)
      let storage = StorageClasses(serialType: code)
      guard field < fields.count, !storage.isEmpty, !allows(code, in: field) else { return nil }
      // The other bits change the length of the value, which the record's own length would contradict.
      let before = code ^ 1
      let isNear = allows(before, in: field) && SerialType.length(of: before) == width
      return isNear ? Flippable(field: field, storage: storage.rawValue) : nil
    }
  }

  /// Writes NULL for the fields with serial types that SQLite keeps for itself, as it reads them.
  static func clearReservedTypes(_ record: inout [UInt8]) {
    var offset = 0
    guard let length = Varint.read(record.span, at: &offset, before: record.count), length <= Int64(record.count) else {
      return
    }
    while offset < Int(length) {
      let place = offset
      guard let code = Varint.read(record.span, at: &offset, before: Int(length)) else { return }
      if code == 10 || code == 11, offset == place + 1 { record[place] = 0 }
    }
  }

  /// The serial type of each field of a cell's record, the length of its value and where that begins; nil where the header
  /// cannot be read.
  private static func types(_ bytes: Span<UInt8>, _ cell: LeafCell) -> [(code: Int64, width: Int, body: Int)]? {
    let end = cell.payload &+ cell.local
    var offset = cell.payload
    guard let headerLength = Varint.read(bytes, at: &offset, before: end), headerLength > 0,
      headerLength <= Int64(cell.local)
    else { return nil }
    let headerEnd = cell.payload &+ Int(headerLength)
    var body = headerEnd
    var types: [(code: Int64, width: Int, body: Int)] = []
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd),
        // SQLite reads the two reserved types as NULL.
        let width = code == 10 || code == 11 ? 0 : SerialType.length(of: code), width <= Cell.maximumPayloadLength
      else { return nil }
      types.append((code, width, body))
      body &+= width
    }
    return types
  }
}
