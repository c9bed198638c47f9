import Platform
import SystemPackage

/// A restored backup for reading: in unnamed files, or in a private folder if it was salvaged.
struct RestoredContent {
  enum Values {
    /// Whole, in the backup.
    case packed(BackupExtraction)

    /// Below the support folder of a salvaged store or an original.
    case files(FilePath)

    /// Returns the digests of the named values that are there, by path.
    func digests(of names: Set<String>, in fileSystem: FileSystem) throws -> [String: String] {
      let paths = Set(names.map(ReferencedValues.path))
      var digests: [String: String] = [:]
      switch self {
      case .packed(let extraction):
        for item in try extraction.manifest.externalData?.items ?? [] where paths.contains(item.name.text) {
          digests[item.name.text] = item.sha256
        }
      case .files(let folder):
        for path in paths {
          let file = folder.appending(FilePath(path).components)
          guard try fileSystem.status(of: file)?.kind == .regular else { continue }
          digests[path] = try FileDigest(of: fileSystem.open(file)).hexadecimal
        }
      }
      return digests
    }
  }

  /// The database, or the main file of evidence.
  let main: ReadableFile

  let values: Values

  /// The losses; nil if there are none.
  let report: RestoreReport?
}

extension BackupRestorer {
  /// Reads a restored backup while the body runs.
  ///
  /// Only a damaged backup that is to be salvaged gets names, in a private folder.
  ///
  /// - Parameters:
  ///   - temporary: the parent of the private folder; the system's if nil.
  ///   - alternative: a second parent; the backups' folder if nil.
  func withContent<Value>(
    _ id: BackupIdentifier, options: Options, temporary: FilePath?, or alternative: FilePath? = nil,
    _ body: (_ content: RestoredContent, _ folder: FilePath) throws -> Value
  ) throws -> Value {
    // A salvage unpacks the backup once more.
    var options = options
    options.progress = RisingProgress(options.progress).report
    let home = try privateFolder(in: temporary, or: alternative)
    defer { withExtendedLifetime(home) {} }
    let content: RestoredContent
    do {
      content = try unnamedContent(id, at: home.path.appending("Store.sqlite"), options)
    } catch {
      let error = BackupError(any: error)
      guard options.salvages, error.kind != .cancelled, !error.isEnvironmental else { throw error }
      return try withRestored(id, options: options, temporary: temporary, or: alternative) {
        store, folder, report in
        let values = RestoredContent.Values.files(store.path(of: .externalData))
        return try body(RestoredContent(main: try fileSystem.open(store.main), values: values, report: report), folder)
      }
    }
    return try body(content, home.path)
  }

  private func unnamedContent(
    _ id: BackupIdentifier, at path: FilePath, _ options: Options
  ) throws -> RestoredContent {
    let (files, extraction) = try restoreUnnamed(id, at: path, progress: options.progress)
    guard let main = files[.main] else {
      throw FileError(.notFound, operation: "read the restored store", path: path)
    }
    var values = RestoredContent.Values.packed(extraction)
    if try extraction.manifest.kind == .original, let place = place as? FolderPlace {
      values = .files(place.support(of: id, in: extraction.section))
    }
    return RestoredContent(main: main, values: values, report: nil)
  }
}
