internal import PersistentStore

extension CollectionList {
  /// A many-to-many relationship with its join table; nil where the table is missing or lacks a column for the keys.
  static func manyToMany(_ layout: JoinTableLayout, in schema: SQLSchema) -> (relationship: ManyToMany, table: String)?
  {
    guard let table = table(layout.name, in: schema), let source = column(layout.sourceColumn, of: table),
      let destination = column(layout.destinationColumn, of: table)
    else { return nil }
    func side(_ key: PropertyKey, _ column: String, _ order: String?) -> ManyToMany.Side {
      ManyToMany.Side(
        entity: key.entityName, relationship: key.name, keySQL: column,
        orderSQL: order.flatMap { Self.column($0, of: table) })
    }
    let relationship = ManyToMany(
      side(layout.relationship, source, layout.destinationOrderColumn),
      side(layout.inverse, destination, layout.sourceOrderColumn), tableSQL: SQLText.identifier(table.name))
    return (relationship, table.name)
  }
}
