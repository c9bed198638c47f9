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
  }

  public var kind: Kind
  public var operation: String
  public var path: FilePath?
  public var detail: String
  public var hint: String

  public var code: String { kind.rawValue }

  public init(_ kind: Kind, operation: String, path: FilePath?, detail: String, hint: String) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint
  }

  public var isEnvironmental: Bool { kind == .placeTaken }
}
