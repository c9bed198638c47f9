internal import PersistentStore
internal import Platform

extension SoftwareVersions {
  init(_ examination: Examination, app: String?) {
    self.init(
      app: app.map { printable($0) }, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
      storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem)
  }
}
