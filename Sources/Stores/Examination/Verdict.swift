/// What can be done with a store, in one word.
package enum Verdict: String, Sendable, Hashable, Codable {
  /// It opens with the app's model as it is.
  case compatible

  /// Every page is sound, but it lacks something of the model that its own metadata names, or its bookkeeping is wrong;
  /// that can be made good on a copy.
  case repairable

  /// It was written with an earlier model, from which it can be migrated.
  case outdated

  /// It is sound, but no way leads from it to the app's model.
  case incompatible

  /// It is damaged, or is no store at all.
  case damaged

  /// Nothing is wrong with it, but it is unavailable: locked, forbidden, out of reach, or newer than the app.
  case unavailable

  /// There is no store.
  case missing
}

/// What kind of store a file is.
package enum ExaminedKind: String, Sendable, Hashable, Codable {
  /// A Core Data or SwiftData store.
  case coreData = "core-data"

  /// A SQLite database without Core Data's tables.
  case sqlite

  case unknown
}

/// Why a verdict was given.
package struct VerdictReason: Sendable, Hashable, Encodable {
  /// A stable, machine-readable word, such as `not-sqlite`; part of the command line's contract.
  package var code: String

  /// The reason in plain words, one or two full sentences.
  package var words: String

  /// What to do next, as a full sentence.
  package var hint: String

  /// The code that Core Data reports in such a case, where there is one (`NSCocoaErrorDomain`).
  package var coreDataCode: Int?

  /// The result code that SQLite reports in such a case, where there is one.
  package var sqliteCode: Int?

  /// A reason; words and hint are full sentences that hold no value of a record.
  package init(_ code: String, words: String, hint: String, coreData: Int? = nil, sqlite: Int? = nil) {
    self.code = code
    self.words = words
    self.hint = hint
    coreDataCode = coreData
    sqliteCode = sqlite
  }
}
