import StoreCoordination

/// The file that a model is read from, where it was given as a path or as the name of a quarantined store or of a backup.
struct CarrierName {
  let path: FilePath

  /// What was unpacked for it; it goes with this value.
  private let backup: UnpackedBackup?

  /// The file of a path; of a name, where no file is called so, what the home knows by it.
  ///
  /// The home is the one that the environment names, else the current folder.
  ///
  /// - Throws: what restoring a backup throws; a name that is not known is a path.
  static func path(_ path: FilePath) throws -> CarrierName {
    guard path.components.count == 1, !path.isAbsolute, try FileSystem().status(of: path) == nil,
      let id = BackupIdentifier(path.string)
    else { return CarrierName(path: path, backup: nil) }
    let home = HomeOptions.environment ?? "."
    // A catalogue that cannot be read knows no name; the path is then told to lead nowhere.
    if !id.isMarked, let store = try? Quarantines(home: home).stores().first(where: { $0.id == id.description }) {
      return CarrierName(path: store.files.main, backup: nil)
    }
    guard (try? Backups(home: home).find(id)) != nil else { return CarrierName(path: path, backup: nil) }
    let backup = try UnpackedBackup(
      .backup(id), of: path, home: home, trust: .anyStore, scope: EvidenceScope(lineage: nil, event: nil))
    return CarrierName(path: backup.donor.path, backup: backup)
  }
}
