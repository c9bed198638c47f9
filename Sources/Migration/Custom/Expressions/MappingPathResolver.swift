internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

/// Finds the columns that key paths over a source's model stand for.
struct MappingPathResolver {
  /// The tables of the source.
  let layout: StoreLayout

  /// What stands before the names of the source's tables: `old.`, or nothing.
  let schema: String

  /// The most relationships that a path may follow.
  private static let limit = 8

  /// Whether an entity has a property of that name.
  func hasProperty(_ name: String, of entityName: String) -> Bool {
    layout.storage(of: name, in: entityName) != nil
  }

  /// The column of an attribute of the record `o` itself; nil for anything else.
  func attribute(_ path: [String], of entityName: String) -> (path: PropertyPath, sql: String)? {
    guard let first = path.first, case .attribute(let columns)? = layout.storage(of: first, in: entityName),
      let column = Self.column(columns, Array(path.dropFirst()))
    else { return nil }
    return (PropertyPath(first, leaf: Array(path.dropFirst())), "o.\(column.sqlName)")
  }

  /// The value that a path leads to from the record `o`.
  ///
  /// - Parameter isTestedForNil: whether only that there is a value matters, which also holds where it lies outside.
  func value(
    _ path: [String], of entityName: String, position: Int, isTestedForNil: Bool = false
  ) throws(MappingExpressionProblem) -> String {
    if isTestedForNil, path.count == 1, isMarked(path[0], entityName),
      case .attribute(let columns) = layout.storage(of: path[0], in: entityName), let column = columns.first
    {
      return "o.\(column.sqlName)"
    }
    return try value(path[...], entityName, "o", position, 0)
  }

  private func value(
    _ path: ArraySlice<String>, _ entityName: String, _ row: String, _ position: Int, _ depth: Int
  ) throws(MappingExpressionProblem) -> String {
    guard let first = path.first else { return "NULL" }
    let rest = path.dropFirst()
    switch layout.storage(of: first, in: entityName) {
    case .attribute(let columns):
      guard let column = Self.column(columns, Array(rest)) else {
        throw MappingExpressionProblem(
          position: position,
          detail: "attribute \(printable(first)) of \(printable(entityName)) is not followed by the right names",
          hint: "Its leaves: \(Self.leaves(columns)).")
      }
      guard !isMarked(first, entityName) else {
        throw MappingExpressionProblem(
          position: position,
          detail: "attribute \(printable(first)) of \(printable(entityName)) has external storage, so that its values "
            + "may lie outside the store",
          hint: "Copy it under its own or another name; what reads its values needs a policy.")
      }
      return "\(row).\(column.sqlName)"
    case .toOne(let column, _, _):
      let key = "\(row).\(SQLText.identifier(column))"
      guard !rest.isEmpty else { return key }
      let target = try destination(of: first, entityName, position, depth)
      let next = "q\(depth)"
      let value = try value(rest, target.name, next, position, depth + 1)
      return
        "(SELECT \(value) FROM \(schema)\(SQLText.identifier(target.tableName)) AS \(next) WHERE \(next).Z_PK = \(key))"
    case .toManyByColumn, .toManyByJoinTable:
      throw MappingExpressionProblem(
        position: position,
        detail: "relationship \(printable(first)) of \(printable(entityName)) leads to many records",
        hint: "Write count(\(first)), or sum, avg, min, max, total or group_concat of an attribute behind it.")
    case nil: throw unknown(first, entityName, position)
    }
  }

  /// What a function makes of all records that a to-many relationship leads to.
  func aggregate(
    _ function: String, _ path: [String], of entityName: String, position: Int
  ) throws(MappingExpressionProblem) -> String {
    try aggregate(function, path[...], entityName, "o", position, 0)
  }

  private func aggregate(
    _ function: String, _ path: ArraySlice<String>, _ entityName: String, _ row: String, _ position: Int, _ depth: Int
  ) throws(MappingExpressionProblem) -> String {
    guard let first = path.first else { return "NULL" }
    let rest = path.dropFirst()
    let next = "q\(depth)"
    let from: String
    switch layout.storage(of: first, in: entityName) {
    case .toOne(let column, _, _) where !rest.isEmpty:
      let target = try destination(of: first, entityName, position, depth)
      let value = try aggregate(function, rest, target.name, next, position, depth + 1)
      return "(SELECT \(value) FROM \(schema)\(SQLText.identifier(target.tableName)) AS \(next) "
        + "WHERE \(next).Z_PK = \(row).\(SQLText.identifier(column)))"
    case .toManyByColumn(let table, let column, _):
      from =
        "\(schema)\(SQLText.identifier(table)) AS \(next) WHERE \(next).\(SQLText.identifier(column)) = \(row).Z_PK"
    case .toManyByJoinTable(let table, let own, let destination, _):
      let target = try self.destination(of: first, entityName, position, depth)
      from =
        "\(schema)\(SQLText.identifier(table)) AS p\(depth) JOIN \(schema)\(SQLText.identifier(target.tableName)) "
        + "AS \(next) ON \(next).Z_PK = p\(depth).\(SQLText.identifier(destination)) "
        + "WHERE p\(depth).\(SQLText.identifier(own)) = \(row).Z_PK"
    case .toOne, .attribute:
      throw MappingExpressionProblem(
        position: position,
        detail: "\(printable(first)) of \(printable(entityName)) is no to-many relationship, which \(function)() needs",
        hint: "Name a to-many relationship.")
    case nil: throw unknown(first, entityName, position)
    }
    let target = try destination(of: first, entityName, position, depth)
    guard !rest.isEmpty else {
      guard function == "count" else {
        throw MappingExpressionProblem(
          position: position, detail: "\(function)() needs an attribute behind \(printable(first))",
          hint: "Write \(function)(\(first).attribute).")
      }
      return "(SELECT count(*) FROM \(from))"
    }
    return "(SELECT \(function)(\(try value(rest, target.name, next, position, depth + 1))) FROM \(from))"
  }

  private func destination(
    of relationship: String, _ entityName: String, _ position: Int, _ depth: Int
  ) throws(MappingExpressionProblem) -> EntityLayout {
    guard depth < Self.limit else {
      throw MappingExpressionProblem(
        position: position, detail: "the path follows more than \(Self.limit) relationships")
    }
    guard
      let name = layout.model.properties(of: entityName)[relationship]?.property.relationship?.destinationEntityName,
      let entity = layout.entity(named: name)
    else { throw unknown(relationship, entityName, position) }
    return entity
  }

  private func unknown(_ name: String, _ entityName: String, _ position: Int) -> MappingExpressionProblem {
    let known = layout.model.properties(of: entityName).keys.filter { hasProperty($0, of: entityName) }
    return MappingExpressionProblem(
      position: position, detail: "\(printable(entityName)) has no stored property \"\(printable(name))\"",
      hint: NameSuggestion.hint(for: name, among: known, "properties of \(printable(entityName))"))
  }

  private func isMarked(_ name: String, _ entityName: String) -> Bool {
    guard let attribute = layout.model.properties(of: entityName)[name]?.property.attribute else { return false }
    return attribute.allowsExternalBinaryDataStorage && (attribute.type == .binary || attribute.type == .transformable)
  }

  private static func column(_ columns: [ColumnLayout], _ leaf: [String]) -> ColumnLayout? {
    columns.first { column in
      if case .compositeLeaf(_, let path, _) = column.role { path == leaf } else { leaf.isEmpty }
    }
  }

  private static func leaves(_ columns: [ColumnLayout]) -> String {
    let names = columns.compactMap { column -> String? in
      if case .compositeLeaf(_, let path, _) = column.role { path.joined(separator: ".") } else { nil }
    }
    return names.isEmpty ? "none" : names.sorted().map(printable).joined(separator: ", ")
  }
}
