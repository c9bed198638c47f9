package import PersistentStore

/// What a store lacks of its own model, as JSON; both lists are empty where it has everything.
package struct DriftJSON: Encodable {
  /// A difference that can be made good.
  struct Difference: Encodable {
    var code: String
    var words: String
    var object: String?
    var entity: String?
    var statement: String?
  }

  /// Something that no repair changes.
  struct Remark: Encodable {
    var code: String
    var words: String
  }

  var differences: [Difference]
  var remarks: [Remark]

  /// A drift as JSON.
  package init(_ drift: StoreDrift) {
    differences = drift.differences.map {
      Difference(
        code: $0.code, words: $0.words, object: $0.objectName, entity: $0.entityName, statement: $0.statement)
    }
    remarks = drift.remarks.map { Remark(code: $0.code, words: $0.words) }
  }
}
