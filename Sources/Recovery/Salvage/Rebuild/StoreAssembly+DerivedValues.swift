internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles

extension StoreAssembly {
  /// Computes the derived attributes anew, because what they are derived from may be gone; those that hold a time are kept.
  func computeDerivedValues() throws {
    for entity in layout.entities {
      let properties = layout.model.entities[entity.name]?.properties ?? [:]
      for (name, property) in properties.ordered(by: { $0.key < $1.key }) {
        guard let attribute = property.attribute, !attribute.traits.isTransient,
          case .attribute(let columns) = layout.storage(of: name, in: entity.name), let column = columns.first,
          let value = layout.derivedValue(of: attribute, entity, isTimeWanted: false)
        else { continue }
        try database.execute(
          sql: "UPDATE main.\(SQLText.identifier(entity.tableName)) AS o SET \(column.sqlName) = \(value) "
            + "WHERE o.Z_ENT BETWEEN \(entity.numbers.lowerBound) AND \(entity.numbers.upperBound) "
            + "AND o.\(column.sqlName) IS NOT \(value)")
      }
    }
  }
}
