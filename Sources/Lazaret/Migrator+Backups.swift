internal import Backup
package import Migration
package import Platform

extension Migrator {
  /// Keeps originals in the backup places of their stores.
  package mutating func keepOriginals(by surroundings: Surroundings = .machine) {
    backupsFolder = { (store, home) throws(FileError) in
      do {
        return try Backups(home: home, surroundings: surroundings).claimPlace(of: store.main).path
      } catch {
        let error = BackupError(any: error)
        throw error.fileError
          ?? FileError(.other, because: error, operation: "make the folder of the backups", path: home)
      }
    }
  }
}
