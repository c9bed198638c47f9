import HTTPServer
import Lazaret
import Platform
import Salvage

/// What is known of the damage of a store: by its salvage, or by a look at every page where nothing was salvaged of it.
enum DamageLook: Sendable {
  /// The account of a salvage.
  case salvaged(SalvageReport)

  /// The account of a look at its bytes, of which nothing was made; with the time of the look, where the store may change.
  case looked(OpenedSide, SalvageReport)

  /// The pages are being looked at.
  case preparing(SideProgress)

  /// The store is so large that it is only looked at when that is asked for.
  case notLooked

  /// The account, where there is one.
  var report: SalvageReport? {
    switch self {
    case .salvaged(let report), .looked(_, let report): report
    case .preparing, .notLooked: nil
    }
  }

  /// Whether the account is that of a salvage.
  var isSalvaged: Bool {
    if case .salvaged = self { return true }
    return false
  }

  /// Whether the page is to be loaded again in a moment.
  var isPreparing: Bool {
    if case .preparing = self { return true }
    return false
  }
}

extension InspectorParts {
  /// The most bytes of a store that is looked at without being asked.
  private static let largestLook: Int64 = 1 << 30

  /// What is known of the damage of a store.
  ///
  /// Every page of one of which nothing was salvaged is looked at, in the background; the store itself is only read.
  ///
  /// - Parameter isAsked: whether it is looked at however large it is.
  /// - Throws: ``Refusal`` 404 for a backup, `evidence-missing`, ``SalvageError``, `FileError`.
  func damage(of store: ListedStore, isAsked: Bool = false) throws -> DamageLook {
    if let salvage = store.salvage {
      return .salvaged(try SalvageReport.read(salvage.report, in: surroundings.fileSystem))
    }
    let files = try store.files(
      orRefuse: Refusal(.notFound, "a backup is packed, and has no pages of its own"))
    guard isAsked || store.bytes <= Self.largestLook else { return .notLooked }
    let sums = store.quarantined?.receipt?.files.map(\.sha256) ?? []
    // What the store was a moment ago is not what it is now.
    switch try sides.open(.evidence(files, sha256: sums), patience: 1_000, isFresh: true) {
    case .preparing(let progress): return .preparing(progress)
    case .ready(let side):
      guard let report = side.report else { throw Refusal(.notFound, "nothing is known of the pages of this store") }
      return .looked(side, report)
    }
  }
}

extension DamageLook {
  /// What stands in the place of an account that is not there yet; nil where there is one.
  ///
  /// - Parameter target: the page that looks when it is asked to.
  func waiting(_ target: RequestTarget) -> HTML? {
    switch self {
    case .salvaged, .looked: return nil
    case .preparing(let progress):
      let bar: HTML =
        progress.fraction.map { "<progress value=\"\(String($0))\" max=\"1\" aria-label=\"Progress\"></progress>" }
        ?? "<progress aria-label=\"Progress\"></progress>"
      return """
        <div data-reload="1000"><p role="status">Now \(progress.words). Nothing of the store changes.</p>\
        \(bar)<noscript><p><a href="\(target)">See whether it is done</a></p></noscript></div>
        """
    case .notLooked:
      var asked = target
      asked.query = Query([.init("look", "yes")])
      return """
        <p>The store is large, and looking at every page of it takes a while. Nothing of it changes.</p>\
        <p><a class="button" href="\(asked)" rel="nofollow">Look at every page</a></p>
        """
    }
  }

  /// When the store was looked at, where it may have changed since.
  func asOf(_ now: Timestamp) -> HTML {
    guard case .looked(let side, _) = self, let time = side.takenAt else { return .empty }
    return "<p class=\"soft\">As of \(Words.time(time, now: now)).</p>"
  }
}

/// What a look has found, for programs: the account, or how far the look is.
struct DamagePayload: Sendable, Encodable {
  let look: DamageLook
  let store: ListedStore

  /// Writes the account with `salvaged` beside it, or `preparing` with the phase.
  func encode(to encoder: any Encoder) throws {
    switch look {
    case .salvaged(let report), .looked(_, let report):
      try encoder.encode(["salvaged": look.isSalvaged])
      try SalvageAccount(report: report, store: store, isSalvaged: look.isSalvaged).encode(to: encoder)
    case .preparing(let progress):
      try encoder.encode(["preparing": true, "phase": progress.words, "fraction": progress.fraction])
    case .notLooked: try encoder.encode(["preparing": false])
    }
  }
}
