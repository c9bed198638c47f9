internal import SQLiteFormat
internal import StoreFiles
internal import SystemPackage

/// The statements of a store's schema as far as they can be read: `data/schema.sql`.
struct SchemaListing {
  /// The statements with remarks, as a file.
  let text: [UInt8]

  /// Whether anything could be read.
  let isReadable: Bool

  /// Reads the schema through our own page reader.
  ///
  /// - Throws: what the file system says; what is wrong with the store is in the text.
  init(of files: StoreFileSet, in fileSystem: FileSystem) throws {
    var lines = ["-- The statements of the store's schema, as far as they could be read. It holds no records."]
    var count = 0
    do {
      let database = try Database.withOwnParts(
        main: fileSystem.open(files.main), writeAheadLog: Self.part(.wal, of: files, in: fileSystem),
        rollbackJournal: Self.part(.journal, of: files, in: fileSystem))
      let schema = try database.schema()
      for entry in schema.entries {
        guard let sql = entry.sql else {
          lines.append(
            "-- \(entry.kind.rawValue) \(printable(entry.name)) has no statement; its root is page \(entry.rootPage)")
          continue
        }
        // A page of records in the place of the schema's would be the user's text.
        guard Self.isStatement(sql) else {
          lines.append("-- an entry that is no statement was left out")
          continue
        }
        count += 1
        lines.append("-- root page \(entry.rootPage)")
        lines.append(sql + ";")
      }
      let wrong = schema.findings.counts.reduce(0) { $0 + $1.value }
      if wrong > 0 { lines.append("-- \(wrong) entries or pages of the schema are damaged") }
    } catch let error as FormatError {
      if let fileError = error.fileError { throw fileError }
      lines.append("-- The schema could not be read: \(error.detail).")
    }
    isReadable = count > 0
    text = Array((lines.joined(separator: "\n") + "\n").utf8)
  }

  private static func part(
    _ part: StoreFileSet.Part, of files: StoreFileSet, in fileSystem: FileSystem
  ) throws(FileError) -> (any ByteSource)? {
    guard try fileSystem.status(of: files.path(of: part)) != nil else { return nil }
    return try fileSystem.open(files.path(of: part))
  }

  private static func isStatement(_ sql: String) -> Bool {
    let start = sql.prefix(40).uppercased()
    guard start.hasPrefix("CREATE ") else { return false }
    return ["TABLE", "INDEX", "VIEW", "TRIGGER"].contains { start.contains($0) }
  }
}
