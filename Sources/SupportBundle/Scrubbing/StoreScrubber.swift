public import Platform
public import Salvage
public import SystemPackage

/// Makes a scrubbed copy of a store: the same pages with the same damage, and pseudonyms in the place of values.
///
/// The store is only read. Two passes go over all page images of its files: the first takes note of every value, so that no
/// pseudonym is one and so that what is indexed can keep its order; the second writes. Then every file that was written is
/// checked against the original by ``ResultCheck``, which shares nothing with this module. Memory grows with the number of different
/// values, by some five bytes for each and by about as much as they have for text in indexes, and is bounded by the size of the store.
public struct StoreScrubber: Sendable {
  /// What a scrub is doing.
  public enum Phase: String, Sendable {
    /// Finding out what the pages are.
    case survey

    case notes

    case writing

    /// Looking for original values in what was written.
    case check
  }

  /// What a scrub made.
  public struct Result: Sendable {
    /// What was replaced and what was not.
    public var report: ScrubReport

    /// What looks for the store's values in other files.
    public var scanner: ValueScanner

    /// The files that were written.
    public var files: StoreFileSet

    /// The names of the schema and the model, which are not the user's.
    var names: [String]

    /// How many numbers found no pseudonym that is none of the store's.
    var stuckNumbers: Int64

    /// What the check looked for in the files, for a search in texts.
    package internal(set) var search: ValueSearch?

    /// How long the check of what was written took, of all attempts.
    public internal(set) var checkDuration = Duration.zero

    /// How many bytes it looked through.
    public internal(set) var checkedBytes: Int64 = 0
  }

  /// Called with the work done and the work in all; false ends the scrub with `cancelled`.
  public typealias Progress = @Sendable (_ phase: Phase, _ done: Int64, _ total: Int64) -> Bool

  let key: ScrubbingKey
  let model: SalvageModel?
  let rules: ScrubRules
  let fileSystem: FileSystem

  /// How often the scrub is done again with other pseudonyms where the check finds that two of them make a value.
  private static let attempts = 4

  /// A scrubber.
  ///
  /// - Parameters:
  ///   - key: what pseudonyms follow from; it stays with the owner.
  ///   - model: what is known of the store; nil for what it says itself.
  ///   - rules: which columns stay or are emptied.
  public init(
    key: ScrubbingKey, model: SalvageModel? = nil, rules: ScrubRules = ScrubRules(),
    fileSystem: FileSystem = FileSystem()
  ) {
    self.key = key
    self.model = model
    self.rules = rules
    self.fileSystem = fileSystem
  }

  /// Scrubs a store into a folder, under the same names; the index of its log is left out.
  ///
  /// - Parameters:
  ///   - store: the store's files.
  ///   - folder: where the result goes; no file of these names may be there.
  /// - Throws: ``ScrubbingError``; what was written is removed then.
  public func scrub(
    _ store: StoreFileSet, into folder: FilePath, progress: @escaping Progress = { _, _, _ in true }
  ) throws(ScrubbingError) -> Result {
    let target = StoreFileSet(main: folder.appending(store.main.lastComponent ?? "Store"))
    do throws(FileError) {
      for member in try target.members(in: fileSystem) {
        throw FileError(.alreadyExists, operation: "scrub the store", path: member.path)
      }
    } catch {
      throw ScrubbingError(error)
    }
    do throws(ScrubbingError) {
      let work = try ScrubWork(
        store: store, target: target, key: key, model: model, rules: rules, fileSystem: fileSystem, progress: progress)
      var checkDuration = Duration.zero
      for attempt in 0..<Self.attempts {
        var result = try work.run(attempt: attempt)
        result.checkDuration = checkDuration
        guard let found = try work.check(&result) else {
          try work.finish(&result)
          return result
        }
        checkDuration = result.checkDuration
        work.discard()
        guard attempt + 1 < Self.attempts else {
          throw ScrubbingError(.valuesFound, path: store.main, detail: found)
        }
      }
      throw ScrubbingError.cancelled()
    } catch {
      Self.discard(target, in: fileSystem)
      throw error
    }
  }

  /// Removes what was written of a set.
  static func discard(_ target: StoreFileSet, in fileSystem: FileSystem) {
    // The first error is the one to report.
    for part in [StoreFileSet.Part.main, .wal, .journal] { try? fileSystem.unlink(target.path(of: part)) }
    try? fileSystem.removeTree(target.path(of: .externalData))
  }
}

extension StoreScrubber {
  /// What looks for a store's values in other files, where the store itself is not scrubbed; nothing is written.
  ///
  /// - Throws: ``ScrubbingError``.
  public func scanner(
    of store: StoreFileSet, progress: @escaping Progress = { _, _, _ in true }
  ) throws(ScrubbingError) -> ValueScanner {
    try ScrubWork(
      store: store, target: store, key: key, model: model, rules: rules, fileSystem: fileSystem, progress: progress
    ).scanner()
  }
}

/// A scrub that could not be done, or that did not pass its own check.
public typealias ScrubbingError = Failure<ScrubbingErrorKind>

/// Why a scrub could not be done, or did not pass its own check.
public enum ScrubbingErrorKind: String, FailureKind {
  /// The folder for the result has files of these names already.
  case outputExists = "output-exists"

  /// A column to be kept or dropped is none of the store's.
  case unknownColumn = "unknown-column"

  /// The check found original values in what was written.
  case valuesFound = "values-found"

  /// The store changed while it was read.
  case storeChanged = "store-changed"

  /// The key has not 32 bytes.
  case key = "scrubbing-key"

  /// The caller's progress function asked to stop.
  case cancelled = "cancelled"

  /// The file system refused; the code is that of the file error.
  case file = "scrubbing-file"

  /// The pages could not be looked at.
  case survey = "scrubbing-survey"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "scrub the store"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .outputExists: "Choose another folder for the result."
    case .unknownColumn:
      "Name attributes as Entity.attribute, or columns as table.column where there is no model."
    case .valuesFound: "Nothing was kept of it. Export another level, and report this with the store's schema."
    case .storeChanged: "Close the app, or try again."
    case .key: "Let the software make the key."
    case .cancelled: "Run the same command again at any time."
    case .file: "Check the path and its permissions."
    case .survey: "Inspect the store; export another level where that finds nothing to read."
    }
  }

  /// Whether the environment is at fault, and not the store.
  public var isEnvironmental: Bool { self == .storeChanged }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension ScrubbingError {
  /// The error of a file that could not be read or written.
  init(_ error: FileError) { self.init(.file, because: error) }

  /// The error of pages that could not be looked at.
  init(_ error: SalvageError) {
    if error.kind == .cancelled {
      self = .cancelled()
    } else {
      self.init(error.fileError == nil ? .survey : .file, because: error)
    }
  }

  static func cancelled() -> ScrubbingError { ScrubbingError(.cancelled, detail: "it was cancelled") }
}
