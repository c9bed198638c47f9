public import StoreFiles
internal import SystemPackage

/// Checks a scrubbed store against the original, with a reader of its own and nothing of what made it.
///
/// Both are compared at the same places, outside of what the specification says stays; then every file of the result is searched
/// for the original's values. The original and the result are each read once in order and once more for what is packed or chained.
/// Memory is bounded: some 100 MB for the values of a store of any size.
public struct ResultCheck: Sendable {
  /// Called with the bytes done and the bytes in all; false ends the check.
  public typealias Progress = @Sendable (_ done: Int64, _ total: Int64) -> Bool

  private let original: StoreFileSet
  private let keeping: Set<String>
  private let dropping: Set<String>
  private let names: [String]
  private let fileSystem: FileSystem

  /// A check.
  ///
  /// - Parameters:
  ///   - original: the store's files.
  ///   - keeping: the attributes or columns that stay by the caller's wish.
  ///   - dropping: those that are overwritten with filling.
  ///   - names: names of the schema and the model, which are not the user's; those of the store's own schema are known besides.
  public init(
    of original: StoreFileSet, keeping: Set<String> = [], dropping: Set<String> = [], names: [String] = [],
    in fileSystem: FileSystem = FileSystem()
  ) {
    self.original = original
    self.keeping = keeping
    self.dropping = dropping
    self.names = names
    self.fileSystem = fileSystem
  }

  /// What a check found, and what looks for the same values in texts.
  public struct Outcome: Sendable {
    /// Where values were found.
    public var findings: CheckFindings

    /// What looks for values in other bytes.
    package var search: ValueSearch
  }

  /// Checks a result; nil where the check was ended.
  ///
  /// - Parameter result: the files, under the names of the original.
  public func run(
    on result: StoreFileSet, progress: @escaping Progress = { _, _ in true }
  ) throws(FileError) -> Outcome? {
    var store = try CheckedStore(original, keeping: keeping, dropping: dropping, names: names, in: fileSystem)
    var total = try fileSystem.size(ofFilesBelow: result.path(of: .externalData))
    for part in store.parts { total += 2 * part.source.count }
    var reading = ValueReading(&store, total: total, progress)
    let external = original.path(of: .externalData)
    guard let search = try reading.search(store: &store, external: external, in: fileSystem) else { return nil }
    var pass = ResultPass(store, search, rows: reading.rows, done: reading.done, total: total, progress)
    guard try pass.run(original, result, in: fileSystem) else { return nil }
    return Outcome(findings: pass.findings, search: pass.search)
  }
}

extension FileSystem {
  /// The bytes of all regular files below a folder.
  func size(ofFilesBelow folder: FilePath) throws(FileError) -> Int64 {
    guard try status(of: folder, followingLinks: false)?.kind == .directory else { return 0 }
    return try descendants(of: folder).files.reduce(0) { $0 + ($1.status.kind == .regular ? $1.status.size : 0) }
  }
}
