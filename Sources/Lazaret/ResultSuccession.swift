import PersistentStore
import Platform
import Salvage

/// The decision between salvage results.
///
/// All are kept, and the best is installed; only redundant results, or those with missing or changed files, are
/// removed.
struct ResultSuccession {
  private let result: Receipt.Salvage.Result

  /// The results beside the current one, oldest first.
  private var others: [Receipt.Salvage.Result] = []

  /// The previous current result, if unchanged.
  private var former: Receipt.Salvage.Result?

  private(set) var isCurrent = true

  /// The files to remove.
  private(set) var superfluous: [SalvageFiles] = []

  var comparison: SalvageComparison? { former.map { SalvageComparison($0, result) } }

  var words: String {
    isCurrent ? result.words : result.words + " An earlier result is better, and stays the one to install."
  }

  /// Judges a new result before it gets its names.
  ///
  /// - Parameter model: examines an earlier result again; nil trusts the earlier finding.
  init(
    of result: Receipt.Salvage.Result, in folder: QuarantineFolder, _ stored: QuarantinedStore, _ model: AppModel?,
    _ fileSystem: FileSystem
  ) throws {
    self.result = result
    let salvage = stored.receipt?.salvage
    for other in salvage?.others ?? [] { try keep(other, in: folder, stored.id) }
    guard let former = salvage?.result, let files = folder.files(of: former, stored.id) else { return }
    guard try folder.isIntact(former, files) else {
      superfluous.append(files)
      return
    }
    self.former = former
    let isUsable = try Self.isUsable(former, files, model, fileSystem)
    isCurrent = result.isBetter(than: former, whichIsUsable: isUsable)
    if isCurrent { try keep(former, in: folder, stored.id) }
  }

  private mutating func keep(_ other: Receipt.Salvage.Result, in folder: QuarantineFolder, _ id: String) throws {
    guard let files = folder.files(of: other, id) else { return }
    if try other.isSame(as: result) || !folder.isIntact(other, files) {
      superfluous.append(files)
    } else {
      others.append(other)
    }
  }

  func apply(to salvage: inout Receipt.Salvage) {
    let beside = isCurrent ? others : others + [result]
    salvage.result = isCurrent ? result : former
    salvage.others = beside.isEmpty ? nil : beside
  }

  private static func isUsable(
    _ former: Receipt.Salvage.Result, _ files: SalvageFiles, _ model: AppModel?, _ fileSystem: FileSystem
  ) throws -> Bool {
    guard former.isUsable, let model else { return former.isUsable }
    let examination = try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: model, options: .init(countsRecords: false))
    if examination.verdict == .unavailable, !examination.isNewerThanApp {
      throw LazaretError(.unavailable, examination, path: files.store.main)
    }
    return examination.isUsableAsIs
  }
}
