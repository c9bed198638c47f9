package import Backup
package import ManagedObjectModel
import Salvage
package import StoreFiles
package import SystemPackage

extension BackupRestorer {
  /// Says what restoring a backup over a store would change; neither is touched.
  ///
  /// The backup is restored into a private folder, and the store is copied there; a store that is damaged is compared as
  /// far as its rows can be salvaged.
  ///
  /// - Parameters:
  ///   - path: the present store, whether it is there or not.
  ///   - models: the models by which versions are named.
  ///   - temporary: where the private folder is made; among the system's temporary files if nil.
  /// - Throws: what restoring the backup, or reading the store, failed with.
  package func preview(
    _ id: BackupIdentifier, over path: FilePath, options: Options = Options(), models: [ModelBundle] = [],
    temporary: FilePath? = nil
  ) throws(BackupError) -> RestorePreview {
    try withRestored(id, options: options, temporary: temporary, or: path.folder) {
      store, folder, restored throws(BackupError) in
      do {
        let files = try StoreFileSet.locate(path, in: fileSystem)
        let present = try PresentStore(files, in: folder, surroundings: surroundings)
        var preview = try RestorePreview(
          backup: store.main, present: present.file, state: present.state, models: models)
        if let version = preview.versions?.backup, version.name == nil {
          // Who took the backup may have known its version.
          preview.versions?.backup?.name = try BackupCatalog(of: place).backup(id).manifest?.model?.version
        }
        preview.values = try LargeValueDifference(fileSystem).compare(
          try referencedValues(of: store.main).names, backup: store, present: files)
        if !restored.isContentRight || !restored.lostBlocks.isEmpty {
          preview.remarks.insert("the backup is damaged, and is compared as far as it can be salvaged", at: 0)
        }
        return preview
      } catch let error as SalvageError {
        throw BackupError(salvaging: error)
      } catch {
        throw BackupError(database: error, operation: "compare the backup with the store", path: path)
      }
    }
  }

  /// A folder that nobody else may look into, in the one for temporary files or in another.
  package func privateFolder(
    in temporary: FilePath?, or alternative: FilePath? = nil
  ) throws(BackupError) -> PrivateFolder {
    do throws(FileError) {
      return try PrivateFolder(
        in: temporary, or: alternative ?? (place as? FolderPlace)?.path, needing: 0, to: "restore the backup",
        surroundings)
    } catch {
      throw BackupError(error)
    }
  }

  /// Restores a backup into a private folder for as long as the body runs.
  ///
  /// - Parameters:
  ///   - temporary: where the private folder is made; among the system's temporary files if nil.
  ///   - alternative: where it is made if nothing can be made there; the folder of the backups if nil.
  package func withRestored<Value>(
    _ id: BackupIdentifier, options: Options, temporary: FilePath?, or alternative: FilePath? = nil,
    _ body: (_ store: StoreFileSet, _ folder: FilePath, _ report: RestoreReport) throws(BackupError) -> Value
  ) throws(BackupError) -> Value {
    // It goes, with everything in it, when this function ends.
    let home = try privateFolder(in: temporary, or: alternative)
    defer { withExtendedLifetime(home) {} }
    let folder = RestoreFolder(for: StoreFileSet(main: home.path.appending("Store.sqlite")), in: fileSystem)
    let working = try folder.make()
    let report = try stage(id, in: folder, options: options)
    let value = try body(folder.store, home.path, report)
    _ = consume working
    return value
  }
}

extension BackupError {
  /// What a salvage failed with.
  init(salvaging error: SalvageError) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else {
      self.init(.damaged, because: error)
    }
  }
}
