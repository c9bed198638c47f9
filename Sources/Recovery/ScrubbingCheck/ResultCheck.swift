public import StoreFiles
internal import SystemPackage

/// Checks a scrubbed store against the original, with a reader of its own and nothing of what made it.
///
/// Both are compared at the same places, outside of what the specification says stays; then every file of the result is searched
/// for the original's values. The original is read twice and the result once, a large file in two halves at once.
/// Memory is bounded: some 120 MB for the values of a store of any size.
public struct ResultCheck: Sendable {
  /// Called with the bytes done and the bytes in all; false ends the check.
  public typealias Progress = @Sendable (_ done: Int64, _ total: Int64) -> Bool

  private let original: StoreFileSet
  private let keeping: Set<String>
  private let dropping: Set<String>
  private let names: [String]
  private let model: [UInt8]?
  private let pages: PageHint?
  private let fileSystem: FileSystem

  /// Where the pages of a file are, which only a survey tells of one whose header is wrong or missing.
  public struct PageHint: Sendable, Hashable {
    /// The bytes of a page.
    public var pageSize: Int

    /// Where page 1 begins.
    public var base: Int64

    /// Pages of a size from a place on.
    public init(pageSize: Int, base: Int64) {
      self.pageSize = pageSize
      self.base = base
    }
  }

  /// A check.
  ///
  /// - Parameters:
  ///   - original: the store's files.
  ///   - keeping: the attributes or columns that stay by the caller's wish.
  ///   - dropping: those that are overwritten with filling.
  ///   - names: names of the schema and the model, which are not the user's; those of the store's own schema are known besides.
  ///   - model: the app's model as the store carries it; it stays where these bytes unpack to the archive of one.
  ///   - pages: where the pages of the main file are; if nil, what its header and its bytes say.
  public init(
    of original: StoreFileSet, keeping: Set<String> = [], dropping: Set<String> = [], names: [String] = [],
    model: [UInt8]? = nil, pages: PageHint? = nil, in fileSystem: FileSystem = FileSystem()
  ) {
    self.original = original
    self.keeping = keeping
    self.dropping = dropping
    self.names = names
    self.model = model
    self.pages = pages
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
    let store = try CheckedStore(
      original, keeping: keeping, dropping: dropping, names: names, model: model, pages: pages, in: fileSystem)
    let bytes = store.parts.reduce(0) { $0 + $1.source.count }
    let total = try fileSystem.size(ofFilesBelow: result.path(of: .externalData)) + 2 * bytes
    let progress = CheckProgress(total: total, progress)
    guard
      let reading = try ValueReading.all(
        of: store, external: original.path(of: .externalData), total: total, progress, in: fileSystem)
    else { return nil }
    let (read, rows) = (reading.store, reading.rows)
    let search = reading.search(size: total)
    let lists = Stretch.lists(of: read, overlap: 1)
    let passes = try concurrently(lists) { [fileSystem] (stretches) throws(FileError) -> CheckFindings? in
      var pass = ResultPass(read, search, rows: rows, total: total, progress)
      return try pass.run(stretches, result, in: fileSystem) ? pass.findings : nil
    }
    var last = ResultPass(read, search, rows: rows, total: total, progress)
    guard try last.searchFiles(below: result.path(of: .externalData), fileSystem) else { return nil }
    var findings = CheckFindings()
    findings.sampling = Int(clamping: search.fingerprints.share)
    for found in passes + [last.findings] {
      guard let found else { return nil }
      findings.take(found)
    }
    return Outcome(findings: findings, search: search)
  }
}

extension FileSystem {
  /// The bytes of all regular files below a folder.
  func size(ofFilesBelow folder: FilePath) throws(FileError) -> Int64 {
    guard try status(of: folder, followingLinks: false)?.kind == .directory else { return 0 }
    return try descendants(of: folder).files.reduce(0) { $0 + ($1.status.kind == .regular ? $1.status.size : 0) }
  }
}
