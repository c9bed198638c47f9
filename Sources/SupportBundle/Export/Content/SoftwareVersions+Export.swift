internal import PersistentStore
internal import Platform

extension SoftwareVersions {
  /// The versions of everything that has a part in an export.
  init(_ examination: Examination, app: String?) {
    self.init(
      app: app.map { printable($0) }, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
      storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem)
  }
}
