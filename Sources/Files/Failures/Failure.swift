public import SystemPackage

/// A failure of one module's kinds; each module has a name of its own for it, such as `FileError`.
///
/// The members of ``details`` can be read and set as members of the failure itself.
@dynamicMemberLookup
public struct Failure<Kind: FailureKind>: ReportableError {
  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath?

  /// What went wrong, in one plain sentence without a full stop and without values of records.
  public var detail: String

  /// What the reader can do next, as a full sentence.
  public var hint: String

  /// What the module's failures say beyond that.
  public var details: Kind.Details

  /// The error of another module that led to this one, where one did.
  public let cause: (any ReportableError)?

  /// The stable word for what went wrong: that of the details where they have one, of the cause where the failure stands
  /// for it, else of the kind.
  public var code: String { details.code ?? represented?.code ?? kind.code }

  /// Whether the environment is at fault, as the details, the cause that the failure stands for, or the kind say.
  public var isEnvironmental: Bool {
    details.isEnvironmental ?? (kind.isEnvironmental || represented?.isEnvironmental ?? false)
  }

  private var represented: (any ReportableError)? { kind.standsForCause ? cause : nil }

  /// A failure of a kind, in the kind's usual words where no others are given.
  public init(
    _ kind: Kind, operation: String = Kind.usualOperation, path: FilePath? = nil, detail: String, hint: String? = nil,
    details: Kind.Details = Kind.Details()
  ) {
    self.kind = kind
    self.operation = operation
    self.path = path
    self.detail = detail
    self.hint = hint ?? kind.usualHint
    self.details = details
    cause = nil
  }

  /// A failure that another module's error led to, in that error's words where no others are given.
  public init(
    _ kind: Kind, because cause: any ReportableError, operation: String? = nil, path: FilePath? = nil,
    detail: String? = nil, hint: String? = nil, details: Kind.Details = Kind.Details()
  ) {
    self.kind = kind
    self.operation = operation ?? cause.operation
    self.path = path ?? cause.path
    self.detail = detail ?? cause.detail
    self.hint = hint ?? cause.hint
    self.details = details
    self.cause = cause
  }

  /// A member of the details.
  public subscript<Value>(dynamicMember member: WritableKeyPath<Kind.Details, Value>) -> Value {
    get { details[keyPath: member] }
    set { details[keyPath: member] = newValue }
  }
}
