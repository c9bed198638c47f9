internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

struct EntityShape {
  /// An attribute or a leaf of a composite.
  struct Attribute {
    let name: String
    let column: ColumnLayout
    let type: AttributeType
    let isMarked: Bool
    let defaultValue: AttributeValue?
    let isDerived: Bool
  }

  let entity: EntityLayout
  let attributes: [Attribute]
  private let indexes: [String: Int]

  init(_ entity: EntityLayout, _ layout: StoreLayout, _ side: InferenceSide) {
    self.entity = entity
    var attributes: [Attribute] = []
    for property in side.properties[entity.name] ?? [] {
      guard let attribute = property.attribute,
        case .attribute(let columns) = layout.storage(of: property.path.name, in: entity.name),
        let column = columns.first(where: { $0.path == property.path })
      else { continue }
      attributes.append(
        Attribute(
          name: property.path.description, column: column, type: attribute.type, isMarked: property.isMarked,
          defaultValue: attribute.defaultValue, isDerived: attribute.isDerived))
    }
    self.attributes = attributes
    indexes = Dictionary(
      attributes.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The values of a cursor's current row, with attribute columns from `start`.
  func values(_ row: Row, from start: Int) -> [String: RecordValue] {
    var result: [String: RecordValue] = [:]
    result.reserveCapacity(attributes.count)
    for (index, attribute) in attributes.enumerated() {
      result[attribute.name] = attribute.value(row.whole(start + index))
    }
    return result
  }

  var defaults: [String: RecordValue] {
    Dictionary(
      attributes.map { ($0.name, $0.defaultValue.map { RecordValue($0) } ?? .null) },
      uniquingKeysWith: { first, _ in first })
  }
}

extension EntityShape.Attribute {
  func value(_ value: DatabaseValue) -> RecordValue {
    let stored: StoredValue =
      switch value.storage {
      case .null: .null
      case .int64(let number): .integer(number)
      case .double(let number): .real(number)
      case .string(let text): .text(text)
      case .blob(let data): .blob([UInt8](data))
      }
    return RecordValue(stored, type: type, allowsExternalStorage: isMarked)
  }

  /// The column value; nil if the type differs.
  func stored(_ value: RecordValue) -> DatabaseValue? {
    switch (type, value) {
    case (_, .null): return .null
    case (_, .unexpected(let raw)): return Self.raw(raw)
    case (.integer16, .integer(let number)): return Int16(exactly: number).map { Int64($0).databaseValue }
    case (.integer32, .integer(let number)): return Int32(exactly: number).map { Int64($0).databaseValue }
    case (.integer64, .integer(let number)): return number.databaseValue
    case (.boolean, .boolean(let flag)): return (flag ? 1 : 0).databaseValue
    case (.double, .real(let number)), (.float, .real(let number)), (.date, .date(let number)),
      (.decimal, .real(let number)):
      return number.isFinite ? number.databaseValue : nil
    case (.double, .integer(let number)), (.float, .integer(let number)), (.decimal, .integer(let number)):
      return number.databaseValue
    case (.decimal, .decimal(let digits)): return Double(digits) == nil ? nil : digits.databaseValue
    case (.string, .string(let text)), (.uri, .uri(let text)): return text.databaseValue
    case (.uuid, .uuid(let bytes)): return bytes.count == 16 ? Data(bytes).databaseValue : nil
    case (.binary, .data(let bytes)), (.transformable, .data(let bytes)):
      return Data((isMarked ? [1] : []) + bytes).databaseValue
    case (.binary, .externalData(let name)), (.transformable, .externalData(let name)):
      return isMarked && name.utf8.count == 36 ? Data([2] + Array(name.utf8) + [0]).databaseValue : nil
    default: return nil
    }
  }

  private static func raw(_ value: StoredValue) -> DatabaseValue {
    switch value {
    case .null: .null
    case .integer(let number): number.databaseValue
    case .real(let number): number.databaseValue
    case .text(let text): text.databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    }
  }
}

extension RecordValue {
  /// A model default; nil for unreadable kinds.
  init(_ value: AttributeValue) {
    switch value {
    case .integer(let number): self = .integer(number)
    case .real(let number): self = .real(number)
    case .decimal(let digits): self = .decimal(digits)
    case .boolean(let flag): self = .boolean(flag)
    case .string(let text): self = .string(text)
    case .date(let seconds): self = .date(seconds)
    case .data(let bytes): self = .data(bytes)
    case .uuid(let bytes): self = .uuid(bytes)
    case .uri(let text): self = .uri(text)
    case .opaque: self = .null
    }
  }
}
