internal import ManagedObjectModel

struct TableInProgress {
  /// The column groups of a fresh table (format section 3.5).
  ///
  /// The position of URI among the last groups is unknown.
  private enum Group: Int, CaseIterable {
    case integer, order, float, decimal, string, uuid, uri, transformable, binary

    init(_ type: AttributeType) {
      switch type {
      case .integer16, .integer32, .integer64, .boolean: self = .integer
      case .double, .float, .date: self = .float
      case .decimal: self = .decimal
      case .string: self = .string
      case .uuid: self = .uuid
      case .uri: self = .uri
      case .transformable: self = .transformable
      case .binary, .undefined, .objectID, .composite: self = .binary
      }
    }
  }

  private var names = NameAllocator(reserving: ["Z_PK", "Z_ENT", "Z_OPT"])
  private var groups: [[ColumnLayout]] = Array(repeating: [], count: Group.allCases.count)

  private var attributeColumns: [String: [ColumnLayout]] = [:]
  private(set) var toOneColumns: [String: (column: String, entityColumn: String?)] = [:]
  private(set) var orderColumns: [String: String] = [:]
  private var ownerColumns: [PropertyKey: (column: String, orderColumn: String?)] = [:]

  var orderedColumns: [ColumnLayout] {
    [
      ColumnLayout(name: "Z_PK", type: .integer, role: .primaryKey),
      ColumnLayout(name: "Z_ENT", type: .integer, role: .entityNumber),
      ColumnLayout(name: "Z_OPT", type: .integer, role: .saveCount),
    ] + groups.joined()
  }

  /// Adds an attribute's column, or one per composite leaf.
  ///
  /// A leaf's column is attribute and path joined by underscores (unverified: no such store was available). Leaves
  /// below 16 levels are omitted.
  mutating func allocate(_ attribute: Attribute, key: PropertyKey) {
    guard attribute.type == .composite else {
      guard let type = ColumnType(attribute.type) else { return }
      let column = ColumnLayout(
        name: names.allocate("Z" + attribute.name.uppercased()), type: type,
        role: .attribute(key, type: attribute.type))
      attributeColumns[attribute.name] = [column]
      return
    }
    var columns: [ColumnLayout] = []
    var waiting = attribute.compositeElements.reversed().map { (element: $0, path: [$0.name]) }
    while let (element, path) = waiting.popLast() {
      guard !element.traits.isTransient else { continue }
      if let type = ColumnType(element.type) {
        let name = "Z" + ([attribute.name] + path).joined(separator: "_").uppercased()
        columns.append(
          ColumnLayout(
            name: names.allocate(name), type: type, role: .compositeLeaf(key, path: path, type: element.type)))
      } else if path.count < 16 {
        waiting += element.compositeElements.reversed().map { ($0, path + [$0.name]) }
      }
    }
    attributeColumns[attribute.name] = columns
  }

  mutating func allocateToOne(_ key: PropertyKey, destinationNumber: Int?, isOrdered: Bool) {
    let upper = key.name.uppercased()
    let column = names.allocate("Z" + upper)
    toOneColumns[key.name] = (column, destinationNumber.map { names.allocate("Z\($0)_" + upper) })
    if isOrdered { orderColumns[key.name] = names.allocate("Z_FOK_" + upper) }
  }

  mutating func allocateOwner(_ relationship: LayoutBuilder.OneWayToMany) {
    let upper = relationship.key.name.uppercased()
    let column = names.allocate("Z\(relationship.ownerNumber)" + upper)
    ownerColumns[relationship.key] = (
      column, relationship.isOrdered ? names.allocate("Z_FOK_\(relationship.ownerNumber)" + upper) : nil
    )
  }

  /// Groups the entity's columns and records property storage.
  ///
  /// - Parameters:
  ///   - properties: own stored properties by name.
  ///   - legacyOrder: property names in `Z_FOK_` column order.
  mutating func groupColumns(
    of entityName: String, properties: [Property], oneWay: [LayoutBuilder.OneWayToMany], legacyOrder: [String],
    storages: inout [PropertyKey: PropertyStorage]
  ) {
    for property in properties {
      guard let columns = attributeColumns[property.name] else { continue }
      for column in columns { groups[Self.group(of: column).rawValue].append(column) }
      storages[PropertyKey(entityName: entityName, name: property.name)] = .attribute(columns: columns)
    }
    for property in properties {
      guard let toOne = toOneColumns[property.name] else { continue }
      let key = PropertyKey(entityName: entityName, name: property.name)
      append(toOne.column, .toOne(key))
      if let entityColumn = toOne.entityColumn { append(entityColumn, .toOneEntity(key)) }
      storages[key] = .toOne(
        column: toOne.column, entityColumn: toOne.entityColumn, orderColumn: orderColumns[property.name])
    }
    for name in legacyOrder {
      guard let column = orderColumns[name] else { continue }
      append(column, .toOneOrder(PropertyKey(entityName: entityName, name: name)), to: .order)
    }
    for relationship in oneWay {
      guard let owner = ownerColumns[relationship.key] else { continue }
      append(owner.column, .owner(relationship.key))
      if let orderColumn = owner.orderColumn { append(orderColumn, .ownerOrder(relationship.key), to: .order) }
    }
    attributeColumns = [:]
    toOneColumns = [:]
    orderColumns = [:]
  }

  func ownerColumn(of key: PropertyKey) -> (column: String, orderColumn: String?)? { ownerColumns[key] }

  private mutating func append(_ name: String, _ role: ColumnRole, to group: Group = .integer) {
    groups[group.rawValue].append(ColumnLayout(name: name, type: .integer, role: role))
  }

  private static func group(of column: ColumnLayout) -> Group {
    switch column.role {
    case .attribute(_, let type), .compositeLeaf(_, _, let type): Group(type)
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: .integer
    }
  }
}
