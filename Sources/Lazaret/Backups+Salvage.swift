extension Backups {
  /// Restores a backup into a private folder, and hands it to a salvage: as a healthy store that lost rows are taken from,
  /// and with the recovery kit that lies in it.
  ///
  /// - Parameters:
  ///   - id: the backup.
  ///   - store: the store that is salvaged, whose own backups are looked at first; then those of the whole home.
  ///   - body: gets the restored store and its kit; both are gone when it ends.
  /// - Throws: `no-such-backup`, `ambiguous-id`, what restoring failed with, or what the body throws.
  public func withDonor<Value>(
    _ id: BackupIdentifier, for store: FilePath, _ body: (_ donor: SalvageDonor, _ kit: KitSource) throws -> Value
  ) throws -> Value {
    let own = try catalog(of: store)
    let catalog = own.backups.contains { $0.id == id } ? own : try find(id).catalog
    let backup = try catalog.backup(id)
    let kit = try catalog.recoveryKit(of: backup).map { KitSource.kit($0) } ?? .none
    let result = try BackupRestorer(of: catalog.place, surroundings: surroundings)
      .withRestored(id, options: .init(), temporary: nil) {
        (store, _) throws(BackupError) -> Result<Value, any Error> in
        Result { try body(SalvageDonor(path: store.main, date: id.date), kit) }
      }
    return try result.get()
  }
}
