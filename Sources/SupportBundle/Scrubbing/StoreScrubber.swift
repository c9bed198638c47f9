public import Platform
public import Salvage
public import SystemPackage

/// Makes a scrubbed copy of a store: the same pages and damage, with pseudonyms for values.
///
/// The store is only read. The first pass notes every value, so that no pseudonym equals one and indexed values keep
/// their order; the second writes. Then ``ResultCheck``, which shares no code with this module, compares each file with
/// the original. Memory grows with the distinct values, by five bytes each plus indexed text, and is bounded by the
/// store's size.
public struct StoreScrubber: Sendable {
  /// The phase of a scrub.
  public enum Phase: String, Sendable {
    case survey

    case notes

    case writing

    /// Searching the output for original values.
    case check
  }

  /// The result of a scrub.
  public struct Result: Sendable {
    /// The report.
    public var report: ScrubReport

    /// The scanner for the store's values in other files.
    public var scanner: ValueScanner

    /// The output files.
    public var files: StoreFileSet

    /// The names of schema and model.
    var names: [String]

    /// The numbers without a pseudonym outside the store.
    var stuckNumbers: Int64

    /// The check's search, for texts.
    package internal(set) var search: ValueSearch?

    /// The duration of the check, over all attempts.
    public internal(set) var checkDuration = Duration.zero

    /// The number of checked bytes.
    public internal(set) var checkedBytes: Int64 = 0
  }

  /// Receives the work done and the total; returns false to end with `cancelled`.
  public typealias Progress = @Sendable (_ phase: Phase, _ done: Int64, _ total: Int64) -> Bool

  let key: ScrubbingKey
  let model: SalvageModel?
  let rules: ScrubRules
  let fileSystem: FileSystem

  /// The retries with other pseudonyms after a failed check.
  private static let attempts = 4

  /// Creates a scrubber.
  ///
  /// - Parameters:
  ///   - key: the secret of the pseudonyms, which stays with the owner.
  ///   - model: the app's model; if nil, the store's own.
  ///   - rules: the columns to keep or overwrite.
  public init(
    key: ScrubbingKey, model: SalvageModel? = nil, rules: ScrubRules = ScrubRules(),
    fileSystem: FileSystem = FileSystem()
  ) {
    self.key = key
    self.model = model
    self.rules = rules
    self.fileSystem = fileSystem
  }

  /// Scrubs a store into a folder, under the same names, without the WAL index.
  ///
  /// - Parameter folder: the output folder, which must not contain these names.
  /// - Throws: ``SupportBundleError`` or `FileError`, after removing the output.
  public func scrub(
    _ store: StoreFileSet, into folder: FilePath, progress: @escaping Progress = { _, _, _ in true }
  ) throws -> Result {
    let target = StoreFileSet(main: folder.appending(store.main.lastComponent ?? "Store"))
    for member in try target.members(in: fileSystem) {
      throw FileError(.alreadyExists, operation: "scrub the store", path: member.path)
    }
    do {
      let work = try ScrubWork(
        store: store, target: target, key: key, model: model, rules: rules, fileSystem: fileSystem, progress: progress)
      var checkDuration = Duration.zero
      for attempt in 0..<Self.attempts {
        var result = try work.run(attempt: attempt)
        result.checkDuration = checkDuration
        guard let found = try work.check(&result) else {
          try work.requireUnchanged()
          try work.listFiles(in: &result.report)
          return result
        }
        checkDuration = result.checkDuration
        work.discard()
        guard attempt + 1 < Self.attempts else {
          throw SupportBundleError(.valuesFound, path: store.main, detail: found)
        }
      }
      throw SupportBundleError.cancelled(SupportBundleErrors.scrubbing)
    } catch {
      Self.discard(target, in: fileSystem)
      throw error
    }
  }

  static func discard(_ target: StoreFileSet, in fileSystem: FileSystem) {
    for part in [StoreFileSet.Part.main, .wal, .journal] { try? fileSystem.unlink(target.path(of: part)) }
    try? fileSystem.removeTree(target.path(of: .externalData))
  }
}

extension StoreScrubber {
  /// Returns a scanner for a store's values in other files, without writing.
  ///
  /// - Throws: ``SupportBundleError``, `SalvageError` or `FileError`.
  public func scanner(
    of store: StoreFileSet, progress: @escaping Progress = { _, _, _ in true }
  ) throws -> ValueScanner {
    try ScrubWork(
      store: store, target: store, key: key, model: model, rules: rules, fileSystem: fileSystem, progress: progress
    ).scanner()
  }
}
