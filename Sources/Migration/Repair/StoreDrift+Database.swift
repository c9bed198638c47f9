internal import GRDB
import ManagedObjectModel
internal import PersistentStore

extension StoreDrift {
  /// Compares an open store with its own model.
  init(in database: Database, of layout: StoreLayout) throws {
    self.init(
      of: try StoreOutline(database, layout: layout), to: layout, hashes: layout.model.versionHashes())
  }
}
