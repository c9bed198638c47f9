internal import Foundation
internal import GRDB
internal import PersistentStore

extension StoreDrift {
  /// What an open store lacks of its own model, and has other than that wants it.
  init(in database: Database, of layout: StoreLayout) throws {
    let outline = try StoreOutline(database, schema: "main")
    self.init(of: outline, to: layout, hashes: layout.model.versionHashes())
  }
}
