internal import GRDB
import ManagedObjectModel
internal import PersistentStore

extension StoreDrift {
  /// What an open store lacks of its own model, and has other than that wants it.
  init(in database: Database, of layout: StoreLayout) throws {
    self.init(
      of: try StoreOutline(database, layout: layout), to: layout, hashes: layout.model.versionHashes())
  }
}
