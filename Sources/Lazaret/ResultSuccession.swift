import PersistentStore
import Platform
import Salvage

/// What becomes of the earlier results of a quarantined store when another one has been made.
///
/// A better one is never replaced: both stay, and the best is the one to install. Only a result that says and stands on the
/// same as another, and one whose file is gone or was changed, makes way.
struct ResultSuccession {
  private let result: Receipt.Salvage.Result

  /// The results that stay beside the current one, oldest first.
  private var others: [Receipt.Salvage.Result] = []

  /// The one that was current before, where it is there and unchanged.
  private var former: Receipt.Salvage.Result?

  /// Whether the new result is the one to install.
  private(set) var isCurrent = true

  /// The files of the results that make way.
  private(set) var superfluous: [SalvageFiles] = []

  /// How the new result differs from the one that was current before; nil where there was none.
  var comparison: SalvageComparison? { former.map { SalvageComparison($0, result) } }

  /// What came out, in one or two plain sentences.
  var words: String {
    isCurrent ? result.words : result.words + " An earlier result is better, and stays the one to install."
  }

  /// Judges a new result, before it gets its names.
  ///
  /// - Parameter model: the app's model, by which an earlier result is looked at again; nil for what was found then.
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

  /// Keeps an earlier result beside the new one, unless it says the same.
  private mutating func keep(_ other: Receipt.Salvage.Result, in folder: QuarantineFolder, _ id: String) throws {
    guard let files = folder.files(of: other, id) else { return }
    if try other.isSame(as: result) || !folder.isIntact(other, files) {
      superfluous.append(files)
    } else {
      others.append(other)
    }
  }

  /// Notes on a receipt which result is the one to install, and which others there are.
  func apply(to salvage: inout Receipt.Salvage) {
    let beside = isCurrent ? others : others + [result]
    salvage.result = isCurrent ? result : former
    salvage.others = beside.isEmpty ? nil : beside
  }

  /// Whether the app, as it is now, can open what came out before.
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
