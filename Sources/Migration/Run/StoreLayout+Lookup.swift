internal import ManagedObjectModel
internal import PersistentStore

extension StoreLayout {
  func property(_ key: PropertyKey) -> Property? { model.entities[key.entityName]?.properties[key.name] }

  /// The entity that a relationship leads to.
  func destination(of key: PropertyKey) -> EntityLayout? {
    (property(key)?.relationship?.destinationEntityName).flatMap { entity(named: $0) }
  }

  /// The column of an attribute or a composite's leaf.
  func column(of path: PropertyPath, in entityName: String) -> ColumnLayout? {
    guard case .attribute(let columns) = storage(of: path.name, in: entityName) else { return nil }
    return columns.first { $0.path == path }
  }

  /// The column of the owner's position, as the inverse orders it, in a join table that has the owner in `ownColumn`.
  func ownOrderColumn(ofJoinTable name: String, ownColumn: String) -> String? {
    joinTable(named: name).flatMap { $0.sourceColumn == ownColumn ? $0.sourceOrderColumn : $0.destinationOrderColumn }
  }
}

extension ColumnLayout {
  /// The attribute or composite leaf.
  var path: PropertyPath? {
    switch role {
    case .attribute(let key, _): PropertyPath(key.name)
    case .compositeLeaf(let key, let path, _): PropertyPath(key.name, leaf: path)
    case .primaryKey, .entityNumber, .saveCount, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder: nil
    }
  }
}
