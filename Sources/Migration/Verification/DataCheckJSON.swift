/// What contradicts a store's own model in its records, as JSON; no value of a record is in it.
package struct DataCheckJSON: Encodable {
  struct Finding: Encodable {
    var code: String
    var words: String
    var table: String
    var columns: [String]
    var property: String
    var count: Int
    var keys: [[Int64]]
  }

  var findings: [Finding]

  /// The findings of a check.
  package init(_ check: DataCheck) {
    findings = check.findings.map {
      Finding(
        code: $0.kind.rawValue, words: $0.words, table: $0.table, columns: $0.columns, property: $0.property,
        count: $0.count, keys: $0.keys)
    }
  }
}
