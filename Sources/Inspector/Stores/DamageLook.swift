import HTTPServer
import Lazaret
import Platform
import Salvage

/// A store's damage, from its salvage or from an examination of every page.
enum DamageLook: Sendable {
  case salvaged(SalvageReport)

  /// The report of an examination, with its time if the store may change.
  case looked(OpenedSide, SalvageReport)

  case preparing(SideProgress)

  /// The store is too large to examine without request.
  case notLooked

  var report: SalvageReport? {
    switch self {
    case .salvaged(let report), .looked(_, let report): report
    case .preparing, .notLooked: nil
    }
  }

  var isSalvaged: Bool {
    if case .salvaged = self { return true }
    return false
  }

  var isPreparing: Bool {
    if case .preparing = self { return true }
    return false
  }
}

extension InspectorParts {
  /// The largest store in bytes examined without request.
  private static let largestLook: Int64 = 1 << 30

  /// Returns a store's damage.
  ///
  /// An unsalvaged store is examined in the background, read-only.
  ///
  /// - Parameter isAsked: whether to examine a store of any size.
  /// - Throws: ``Refusal`` 404 for a backup, `evidence-missing`, ``SalvageError``, `FileError`.
  func damage(of store: ListedStore, isAsked: Bool = false) throws -> DamageLook {
    if let salvage = store.salvage {
      return .salvaged(try SalvageReport.read(salvage.report, in: surroundings.fileSystem))
    }
    let files = try store.files(
      orRefuse: Refusal(.notFound, "a backup is packed, and has no pages of its own"))
    guard isAsked || store.bytes <= Self.largestLook else { return .notLooked }
    let sums = store.quarantined?.receipt?.files.map(\.sha256) ?? []
    // The store may have changed since the last copy.
    switch try sides.open(.evidence(files, sha256: sums), patience: 1_000, isFresh: true) {
    case .preparing(let progress): return .preparing(progress)
    case .ready(let side):
      guard let report = side.report else { throw Refusal(.notFound, "nothing is known of the pages of this store") }
      return .looked(side, report)
    }
  }
}

extension DamageLook {
  /// The placeholder for a missing report.
  ///
  /// - Parameter target: the page that starts the examination.
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

  /// The examination's time, if the store may have changed since.
  func asOf(_ now: Timestamp) -> HTML {
    guard case .looked(let side, _) = self, let time = side.takenAt else { return .empty }
    return "<p class=\"soft\">As of \(Words.time(time, now: now)).</p>"
  }
}

struct DamagePayload: Sendable, Encodable {
  let look: DamageLook
  let store: ListedStore

  /// Encodes the report plus `salvaged`, or `preparing` with the phase.
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
