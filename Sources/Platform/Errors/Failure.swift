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

/// What can go wrong in a module: an enumeration with one case for each kind of failure.
///
/// The raw values are the codes of the command line's contract. The errors of the module are `Failure`s of its kinds:
///
///     public enum KitErrorKind: String, FailureKind { case unreadable = "kit-unreadable" … }
///     public typealias KitError = Failure<KitErrorKind>
public protocol FailureKind: Hashable, Sendable {
  /// What the module's failures say beyond what all failures say.
  associatedtype Details: FailureDetails = NoDetails

  /// What was being done where a failure does not say otherwise, as an infinitive phrase.
  static var usualOperation: String { get }

  /// The stable word for the kind.
  var code: String { get }

  /// What the reader can do next where a failure does not say otherwise, as a full sentence.
  var usualHint: String { get }

  /// Whether the environment is at fault; false unless the module says otherwise.
  var isEnvironmental: Bool { get }

  /// Whether a failure of this kind stands for its cause, so that it has the cause's code and is environmental where the
  /// cause is; false unless the module says otherwise.
  var standsForCause: Bool { get }
}

extension FailureKind {
  /// False: the store, or what was asked for, is at fault.
  public var isEnvironmental: Bool { false }

  /// False: the kind has a code of its own.
  public var standsForCause: Bool { false }
}

extension FailureKind where Self: RawRepresentable, RawValue == String {
  /// The raw value.
  public var code: String { rawValue }
}

/// What a module's failures say beyond what all failures say, such as the entity that a migration failed at.
public protocol FailureDetails: Sendable {
  init()

  /// A code that says more than the kind's; nil where there is none.
  var code: String? { get }

  /// Whether the environment is at fault, where the kind alone does not tell; nil where it does.
  var isEnvironmental: Bool? { get }
}

extension FailureDetails {
  /// Nil: the kind's code says all.
  public var code: String? { nil }

  /// Nil: the kind tells.
  public var isEnvironmental: Bool? { nil }
}

/// No details: kind, operation, path, detail and hint say all.
public struct NoDetails: FailureDetails {
  /// Nothing more to say.
  public init() {}
}
