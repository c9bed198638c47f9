import HTTPServer
import StoreCoordination

/// What a store lacks and what a repair would do, by repairing a private copy.
struct RepairPreview: Encodable {
  private let store: ListedStore
  private let drift: StoreDrift?
  private let check: DataCheck?

  /// What a repair would do by default; nil where the store is too large for a page.
  private let structure: PagePart<RepairAccount>?

  /// What one of records too would do; nil where no check has found anything that it could put right.
  private let data: PagePart<RepairAccount>?

  /// The most bytes of a store that a page repairs a copy of; of larger ones the command line tells.
  private static let maximumBytes: Int64 = 256 << 20

  init(_ store: ListedStore, _ subject: RepairSubject, _ parts: InspectorParts) {
    self.store = store
    drift = subject.examination.value?.drift
    // Why the store cannot be looked at is told by the parts below.
    check = (try? parts.repairs.check(of: subject.files, in: parts.surroundings.fileSystem)) ?? nil
    func dryRun(_ scope: RepairScope) -> PagePart<RepairAccount>? {
      store.bytes > Self.maximumBytes ? nil : PagePart { try parts.repairs.dryRun(of: subject, scope, parts) }
    }
    structure = dryRun(.structure)
    data = check?.hasContradictions == true ? dryRun(.data) : nil
  }

  /// Why nothing can be repaired; nil where it can be, as far as was tried.
  var problem: Problem? { structure?.problem }

  func encode(to encoder: any Encoder) throws {
    func account(_ part: PagePart<RepairAccount>?) -> PagePart<RepairOutcome>? {
      part.map { part in part.map { RepairOutcome(nil, dryRun: $0) } }
    }
    try encoder.encode([
      "drift": drift, "structure": JSON.orNull(account(structure)), "findings": JSON.orNull(check),
      "data": account(data),
    ])
  }

  /// - Parameter offersCheck: whether the records can be checked here.
  func html(offersCheck: Bool) -> HTML {
    let lacks: HTML =
      drift.map { drift in
        drift.isEmpty ? "<p>Nothing.</p>" + DriftList(drift: drift).html : DriftList(drift: drift).html
      } ?? .empty
    return """
      <h2>What it lacks of its own model</h2>\(lacks)\
      <h2>What the repair would do</h2>\(shown(structure))\
      <h2>Records and references</h2>\(DataFindings(store: store, check: check).html(offersCheck: offersCheck))\(withData)
      """
  }

  private var withData: HTML {
    guard check?.hasContradictions == true else { return .empty }
    return "<h3>What the repair would do, with records and references</h3>\(shown(data))"
  }

  private func shown(_ part: PagePart<RepairAccount>?) -> HTML {
    guard let part else {
      return """
        <p class="soft">The store is too large for a copy of it to be repaired for this page; \
        <code>lazaret repair --dry-run</code> does.</p>
        """
    }
    // What is wrong is told once, in the place of the button.
    guard part.problem == nil else { return "<p>It would be refused, for the reason below.</p>" }
    return part.html { RepairLists(outcome: RepairOutcome(nil, dryRun: $0)).html }
  }
}
