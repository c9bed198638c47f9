import HTTPServer
import StoreCoordination

/// What the records of a store contradict of its own model, where that was checked.
struct DataFindings {
  let store: ListedStore

  /// What was found; nil where the records were not checked since the store changed last.
  let check: DataCheck?

  /// The findings, or a link to the check.
  ///
  /// - Parameter offersCheck: whether the check can be begun here.
  func html(offersCheck: Bool) -> HTML {
    guard let check else {
      guard offersCheck else {
        return "<p>They were not compared with the model; <code>lazaret inspect --check data</code> does.</p>"
      }
      return """
        <p>They were not compared with the model yet.</p>\
        <p><a class="button" href="\(RequestTarget.store(store.id, "check"))">Check the records …</a></p>
        """
    }
    guard !check.isClean else {
      return "<p>No reference, constraint or mandatory value is against the model.</p>"
    }
    let notChecked: HTML =
      check.notChecked.isEmpty
      ? "" : "<p>Not everything could be checked:</p>\(DriftList.list(check.notChecked))"
    guard !check.findings.isEmpty else {
      return "<p>What could be checked of the records is not against the model.</p>\(notChecked)"
    }
    let rows = DataCheck.Kind.allCases.compactMap { kind -> HTML? in
      let findings = check.findings.filter { $0.kind == kind }
      guard !findings.isEmpty else { return nil }
      let count = findings.reduce(Int64(0)) { $0 &+ Int64($1.count) }
      return "<tr><th scope=\"row\" class=\"wrap\">\(Self.words(kind))</th>\(HTML.number(count, tone: .warn))</tr>"
    }
    let table = HTML.table(
      "Rows against the model", head: "<th scope=\"col\">Kind</th><th scope=\"col\" class=\"number\">Rows</th>", rows)
    return "\(table)\(DriftList.list(check.findings.map(\.words)))\(notChecked)"
  }

  private static func words(_ kind: DataCheck.Kind) -> String {
    switch kind {
    case .duplicateKey: "Rows without a primary key of their own"
    case .wrongEntityNumber: "References with the number of another entity beside them"
    case .danglingReference: "References that lead to no record"
    case .oneSidedRelationship: "Relationships that only one side has"
    case .danglingJoinRow: "Rows of join tables that lead to no record"
    case .duplicate: "Records that break a uniqueness constraint"
    case .missingValue: "Mandatory attributes without a value"
    case .missingFile: "Large values whose files are missing"
    }
  }
}
