internal import Compatibility
internal import ManagedObjectModel
internal import PersistentStore

/// The tables of models, laid out once for several steps: consecutive ones have a model in common.
final class LayoutCache: Sendable {
  /// A model with its tables.
  final class Entry: Sendable {
    let layout: StoreLayout
    let side: InferenceSide
    private let schema = Mutex<SQLSchema?>(nil)

    fileprivate init(_ model: ManagedObjectModel) throws {
      layout = try StoreLayout(model)
      side = InferenceSide(model)
    }

    /// The schema of a new store, as SQLite reads it.
    func newSchema() throws(PersistentStoreError) -> SQLSchema {
      if let known = schema.withLock({ $0 }) { return known }
      let made = try SQLSchema(layout)
      schema.withLock { $0 = made }
      return made
    }
  }

  private let entries = Mutex<[Entry]>([])

  /// A step needs two, the next one of them again.
  private static let capacity = 3

  /// The tables of a model.
  ///
  /// - Throws: what the layout of a model refuses.
  func entry(for model: ManagedObjectModel) throws(MigrationError) -> Entry {
    // Models of one bundle share their storage, so that comparing them costs next to nothing.
    if let known = entries.withLock({ entries in entries.first { $0.layout.model == model } }) { return known }
    let made: Entry
    do {
      made = try Entry(model)
    } catch {
      throw MigrationError(database: error, path: nil)
    }
    entries.withLock { entries in
      entries.append(made)
      if entries.count > Self.capacity { entries.removeFirst() }
    }
    return made
  }
}
