public import StoreFiles
public import SystemPackage

/// A request of the quarantine that cannot be met.
public struct QuarantineError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    case notFound = "not-in-quarantine"
    case ambiguous = "ambiguous-id"
    case nothingToQuarantine = "nothing-to-quarantine"
    case placeTaken = "place-taken"
    case receiptUnreadable = "receipt-unreadable"
    case evidenceChanged = "evidence-changed"
    case catalogueUnreadable = "catalogue-unreadable"
    case notSalvaged = "not-salvaged"
    case salvageUnusable = "salvage-unusable"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to.
  public var path: FilePath?

  /// What went wrong, in one sentence without a full stop.
  public var detail: String

  /// What to do next, as a full sentence.
  public var hint: String

  /// The kind's stable word.
  public var code: String { kind.rawValue }

  /// An error of a kind.
  public init(_ kind: Kind, operation: String, path: FilePath?, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
  }
}
