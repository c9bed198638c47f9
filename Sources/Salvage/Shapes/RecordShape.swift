internal import SQLiteFormat

/// The storage classes, as a bit set.
///
/// Used for each written value, in other modules too, hence inlinable.
struct StorageClasses: OptionSet {
  let rawValue: UInt8

  @inlinable static var null: StorageClasses { StorageClasses(rawValue: 1) }
  @inlinable static var integer: StorageClasses { StorageClasses(rawValue: 2) }
  @inlinable static var real: StorageClasses { StorageClasses(rawValue: 4) }
  @inlinable static var text: StorageClasses { StorageClasses(rawValue: 8) }
  @inlinable static var blob: StorageClasses { StorageClasses(rawValue: 16) }
  @inlinable static var any: StorageClasses { StorageClasses(rawValue: 31) }

  /// Returns the class of a serial type; empty for the two reserved ones.
  @inlinable
  @inline(__always)
  init(serialType code: Int64) {
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
  init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// The record format of a table or index.
struct RecordShape {
  /// The allowed and the usual classes of a field.
  struct Field {
    var allowed: StorageClasses
    var usual: StorageClasses
  }

  var fields: [Field]

  /// The minimum number of fields: old records lack columns added later.
  var minimumFields: Int

  /// The allowed entity numbers in the second field of Core Data's tables.
  var entityNumbers: ClosedRange<Int64>?

  /// Whether fields have only their columns' types, as Core Data ensures.
  var isStrict = false

  /// Whether no field has a type, so anything fits.
  var isUntyped: Bool { fields.allSatisfy { $0.usual == .any || $0.usual == [.null] } }

  struct Fit {
    var length: Int

    var fields: Int

    /// The fields with a usual class other than NULL; fields for any class do not count.
    var usual: Int

    var unusual: Int
  }

  /// Compares the record at an offset; nil if it cannot have this shape.
  ///
  /// - Parameters:
  ///   - end: the end of the available bytes.
  ///   - length: the record's full length, if known.
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

  /// Whether only the entity number does not fit.
  func fitsButForEntity(_ bytes: Span<UInt8>, _ cell: LeafCell) -> Bool {
    guard entityNumbers != nil else { return false }
    var shape = self
    shape.entityNumbers = nil
    let fit = shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length)
    return fit.map { $0.unusual == 0 && $0.fields >= 3 } ?? false
  }

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

  /// Returns the integer of a serial type; nil if unavailable.
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

extension RecordShape {
  static let schema = RecordShape(
    fields: [
      Field(allowed: [.text], usual: [.text]), Field(allowed: [.text], usual: [.text]),
      Field(allowed: [.text], usual: [.text]), Field(allowed: [.integer, .null], usual: [.integer]),
      Field(allowed: [.text, .null], usual: [.text]),
    ], minimumFields: 5)

  /// Returns the shapes of SQLite's own tables, which have untyped columns.
  static func ownTable(_ name: String) -> RecordShape? {
    let text = Field(allowed: [.text], usual: [.text])
    let textOrNull = Field(allowed: [.text, .null], usual: [.text])
    switch name.lowercased() {
    case "sqlite_sequence":
      return RecordShape(fields: [text, Field(allowed: [.integer], usual: [.integer])], minimumFields: 2)
    case "sqlite_stat1": return RecordShape(fields: [text, textOrNull, text], minimumFields: 3)
    default: return nil
    }
  }

  init(_ definition: TableDefinition, isCoreData: Bool, entityNumbers: ClosedRange<Int64>? = nil) {
    let stored = definition.storedColumns
    fields = stored.map { index in
      if index == definition.rowidAlias { return Field(allowed: [.null], usual: [.null]) }
      return Self.field(definition.columns[index], isCoreData: isCoreData, in: definition)
    }
    let lastOriginal = stored.lastIndex { !definition.canBeAdded($0) } ?? 0
    minimumFields = isCoreData ? min(2, stored.count) : max(1, lastOriginal + 1)
    isStrict = isCoreData
    if definition.isWithoutRowid { minimumFields = max(minimumFields, definition.primaryKey.count) }
    if stored.count > 1, isSame(definition.columns[stored[1]].name, "Z_ENT") { self.entityNumbers = entityNumbers }
  }

  /// Creates the shape of index entries: the columns, then the rowid or the rest of the primary key.
  init(indexOf columns: [IndexedColumn], on table: TableDefinition, isCoreData: Bool) {
    fields = columns.map { column in
      guard let name = column.name, let index = table.column(named: name) else {
        return Field(allowed: .any, usual: .any)
      }
      if index == table.rowidAlias { return Field(allowed: [.integer], usual: [.integer]) }
      return Self.field(table.columns[index], isCoreData: isCoreData, in: table)
    }
    if table.isWithoutRowid {
      for name in table.keyFields(behind: columns).compactMap(\.name) {
        if let index = table.column(named: name) { fields.append(Self.field(table.columns[index], isStrict: false)) }
      }
    } else {
      fields.append(Field(allowed: [.integer], usual: [.integer]))
    }
    minimumFields = fields.count
  }

  private static func field(_ column: ColumnDefinition, isCoreData: Bool, in table: TableDefinition) -> Field {
    // A STRICT table accepts any value here unconverted (sqlite.org/stricttables.html).
    if table.isStrict, isSame(column.declaredType, "ANY") { return Field(allowed: .any, usual: .any) }
    return field(column, isStrict: isCoreData || table.isStrict)
  }

  private static func field(_ column: ColumnDefinition, isStrict: Bool) -> Field {
    let usual: StorageClasses =
      switch column.affinity {
      case .integer: [.null, .integer]
      case .real, .numeric: [.null, .integer, .real]
      case .text: [.null, .text]
      case .blob: column.declaredType.isEmpty ? .any : [.null, .blob]
      }
    if isStrict {
      // A decimal number beyond a double may be text.
      return Field(allowed: column.affinity == .numeric ? usual.union(.text) : usual, usual: usual)
    }
    // TEXT affinity converts numbers to text; the others keep values they cannot convert.
    let allowed: StorageClasses = column.affinity == .text ? [.null, .text, .blob] : .any
    // Columns such as DATETIME are numeric to SQLite, but mostly have text.
    return Field(allowed: allowed, usual: column.affinity == .numeric ? usual.union(.text) : usual)
  }
}

extension TableDefinition {
  /// Whether a column may have been added to a table with rows (sqlite.org/lang_altertable.html).
  fileprivate func canBeAdded(_ column: Int) -> Bool {
    let (name, column) = (columns[column].name, columns[column])
    let isConstrained = (primaryKeyColumns + uniqueColumns.joined()).contains {
      $0.name.map { isSame($0, name) } ?? false
    }
    let isConstant = !column.hasDefault || column.defaultValue != nil
    return !column.isPrimaryKey && !column.isUnique && !isConstrained && column.generation != .stored && isConstant
      && (!column.isNotNull || column.defaultValue.map { !$0.isNull } ?? false)
  }
}

/// Whether SQLite treats two names as equal, ignoring ASCII case.
func isSame(_ first: String, _ second: String) -> Bool {
  first.utf8.elementsEqual(second.utf8) { folded($0) == folded($1) }
}

/// Returns a name with ASCII letters in lower case, as SQLite compares.
func foldedName(_ name: String) -> String { String(decoding: name.utf8.map(folded), as: UTF8.self) }

private func folded(_ byte: UInt8) -> UInt8 {
  byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}

extension RecordShape {
  /// The differences of a misfit record from a shape.
  struct Strangeness {
    var fields = 0

    /// The fields with an undeclared class.
    var strange = 0

    /// Whether the record has more fields than the table has columns.
    var isTooLong = false

    /// Whether the entity number is foreign to the table.
    var isOfUnknownEntity = false

    /// Whether a field has a reserved serial type, which SQLite reads as NULL.
    var hasReservedTypes = false

    /// Whether more than half of the fields are strange.
    var isMostlyStrange: Bool { strange * 2 > fields }
  }

  /// A field's class that one bit flip in the record header turns into a usual one.
  struct Flippable: Hashable {
    var field: Int

    var storage: StorageClasses.RawValue
  }

  func admittingAll() -> RecordShape {
    var shape = self
    for field in shape.fields.indices { shape.fields[field].allowed = .any }
    shape.minimumFields = 1
    shape.entityNumbers = nil
    return shape
  }

  /// Returns the differences of a misfit record; nil if the header is unreadable or lengths disagree.
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

  /// Whether a record header continues on overflow pages, and its local part may be a row's.
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

  private func allows(_ code: Int64, in field: Int) -> Bool {
    let storage = StorageClasses(serialType: code)
    return field < fields.count && !storage.isEmpty && fields[field].allowed.contains(storage)
  }

  /// Returns the strange values one header bit away from usual ones: text and binary data differ in one bit, as do
  /// 8-byte integers and floating-point numbers.
  func flippable(_ bytes: Span<UInt8>, _ cell: LeafCell) -> [Flippable] {
    guard let types = Self.types(bytes, cell) else { return [] }
    return types.indices.compactMap { field in
      let (code, width) = (types[field].code, types[field].width)
      let storage = StorageClasses(serialType: code)
      guard field < fields.count, !storage.isEmpty, !allows(code, in: field) else { return nil }
      // Other bits change the value's length, contradicting the record's.
      let before = code ^ 1
      let isNear = allows(before, in: field) && SerialType.length(of: before) == width
      return isNear ? Flippable(field: field, storage: storage.rawValue) : nil
    }
  }

  /// Replaces reserved serial types with NULL, as SQLite reads them.
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

  /// Returns each field's serial type, length and offset; nil for an unreadable header.
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
        let width = code == 10 || code == 11 ? 0 : SerialType.length(of: code), width <= Cell.maximumPayloadLength
      else { return nil }
      types.append((code, width, body))
      body &+= width
    }
    return types
  }
}
