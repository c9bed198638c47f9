internal import BundleWriting
internal import Examination
internal import PageRecovery
internal import Scrubbing
internal import ScrubbingCheck
internal import StoreFiles
internal import SupportBundle
internal import SystemPackage

/// The level `scrubbed`: the store with its values replaced, but for those that the scrub report lists as staying.
struct ScrubbedStore: Sendable {
  let items: [BundleItem]

  let report: ScrubReport

  /// What looks for the store's values in other files.
  let scanner: ValueScanner

  /// What looks for the store's values as the check of the files did.
  let search: ValueSearch?

  /// How long the check of the files took, in seconds.
  let checkSeconds: Double

  /// Where they are before they are packed.
  let files: StoreFileSet

  init(_ work: ExportWork, _ evidence: ExportEvidence, in folder: FilePath) throws {
    guard evidence.hasMain else {
      throw SupportBundleErrors.store(
        work.source.originalPath, "its main file is missing, so that nothing can be scrubbed")
    }
    try ExportFolder.requireRoom(evidence.allBytes, at: folder, work.fileSystem)
    let target = folder.appending("scrubbed")
    try work.fileSystem.makeDirectory(target, permissions: .ownerReadWriteExecute)
    let key = try Self.key(work)
    let result: StoreScrubber.Result
    do throws(ScrubbingError) {
      result = try Self.scrubber(work, key: key).scrub(evidence.files, into: target) {
        [progress = work.progress] phase, done, total in
        progress(phase == .check ? .checking : .scrubbing, done, total)
      }
    } catch {
      throw Self.told(error, work)
    }
    report = result.report
    scanner = result.scanner
    search = result.search
    let (seconds, attoseconds) = result.checkDuration.components
    checkSeconds = ((Double(seconds) + Double(attoseconds) / 1e18) * 1000).rounded() / 1000
    files = result.files
    var items = StoreItems.items(
      of: try ExportEvidence(resting: result.files, in: work.fileSystem), named: work.bundledName,
      "values replaced")
    // The name of a quarantined store has the second of its quarantine.
    var told = result.report
    if let stem = evidence.files.main.stem, let bundled = FilePath(work.bundledName).stem {
      for index in told.files.indices {
        let name = told.files[index].name.text
        told.files[index].name = PathText(FilePath(name.replacing(stem, with: bundled)))
      }
    }
    items.append(
      BundleItem(
        "scrub.json", .bytes(try JSON.bytes(of: told, to: "export the store")),
        words: "what was replaced, and what was overwritten because it could not be read"))
    self.items = items
  }

  private static func key(_ work: ExportWork) throws -> ScrubbingKey {
    work.options.usesSameKey ? try ScrubbingKeyFile(home: work.home, in: work.fileSystem).key() : .random()
  }

  private static func scrubber(_ work: ExportWork, key: ScrubbingKey) -> StoreScrubber {
    StoreScrubber(
      key: key, model: work.options.model.map(SalvageModel.init),
      rules: ScrubRules(keeping: work.options.keeping, dropping: work.options.dropping), fileSystem: work.fileSystem)
  }

  private static func told(_ error: ScrubbingError, _ work: ExportWork) -> any Error {
    switch error.kind {
    case .cancelled: return StoreExporter.cancelled()
    case .valuesFound:
      return SupportBundleError(
        .notScrubbed, because: error, operation: SupportBundleErrors.operation, path: work.source.originalPath,
        detail: error.detail + SupportBundleErrors.keptDetail(work.options.keeping),
        hint: SupportBundleErrors.keptHint(work.options.keeping))
    case .outputExists, .unknownColumn, .storeChanged, .key, .file, .survey: return error
    }
  }
}

extension ScrubbedStore {
  /// What looks for the values of a store that is not scrubbed.
  static func scanner(_ work: ExportWork, _ evidence: ExportEvidence) throws -> ValueScanner? {
    do throws(ScrubbingError) {
      return try scrubber(work, key: .random()).scanner(of: evidence.files) {
        [progress = work.progress] _, done, total in
        progress(.checking, done, total)
      }
    } catch {
      throw told(error, work)
    }
  }
}
