public import SystemPackage

/// A failure of a module, which names it, such as `FileError`.
///
/// The members of ``details`` are also its own.
@dynamicMemberLookup
public struct Failure<Kind: FailureKind>: ReportableError {
  /// The kind of failure.
  public var kind: Kind

  /// The failed operation, as an infinitive phrase.
  public var operation: String

  /// The file or folder concerned.
  public var path: FilePath?

  /// The problem, in one plain sentence without a full stop and without record values.
  public var detail: String

  /// The next step for the reader, as a full sentence.
  public var hint: String

  /// Further facts of the module's failures.
  public var details: Kind.Details

  /// The other module's error that led to this one.
  public let cause: (any ReportableError)?

  /// The stable code: of the details, the represented cause, or the kind.
  public var code: String { details.code ?? represented?.code ?? kind.code }

  /// Whether the environment is at fault, by details, represented cause or kind.
  public var isEnvironmental: Bool {
    details.isEnvironmental ?? (kind.isEnvironmental || represented?.isEnvironmental ?? false)
  }

  private var represented: (any ReportableError)? { kind.standsForCause ? cause : nil }

  /// Makes a failure, by default in the kind's words.
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

  /// Makes a failure from another module's error, by default in its words.
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

  /// Accesses the details.
  public subscript<Value>(dynamicMember member: WritableKeyPath<Kind.Details, Value>) -> Value {
    get { details[keyPath: member] }
    set { details[keyPath: member] = newValue }
  }
}

/// The kinds of failures of a module: an enumeration with one case each.
///
/// The raw values are the codes of the command line's contract. The module's errors are `Failure`s of these kinds:
///
///     public enum KitErrorKind: String, FailureKind { case unreadable = "kit-unreadable" … }
///     public typealias KitError = Failure<KitErrorKind>
public protocol FailureKind: Hashable, Sendable {
  /// Further facts of the module's failures.
  associatedtype Details: FailureDetails = NoDetails

  /// The default operation, as an infinitive phrase.
  static var usualOperation: String { get }

  /// The kind's stable code.
  var code: String { get }

  /// The default hint, as a full sentence.
  var usualHint: String { get }

  /// Whether the environment is at fault; false by default.
  var isEnvironmental: Bool { get }

  /// Whether code and `isEnvironmental` come from the cause; false by default.
  var standsForCause: Bool { get }
}

extension FailureKind {
  /// False: the store or the request is at fault.
  public var isEnvironmental: Bool { false }

  /// False: the kind has its own code.
  public var standsForCause: Bool { false }
}

extension FailureKind where Self: RawRepresentable, RawValue == String {
  /// The raw value.
  public var code: String { rawValue }
}

/// Further facts of a module's failures, such as the entity of a failed migration.
public protocol FailureDetails: Sendable {
  init()

  /// A more specific code than the kind's.
  var code: String? { get }

  /// Whether the environment is at fault; nil if the kind decides.
  var isEnvironmental: Bool? { get }
}

extension FailureDetails {
  /// Nil: the kind's code applies.
  public var code: String? { nil }

  /// Nil: the kind decides.
  public var isEnvironmental: Bool? { nil }
}

/// The details of modules without further facts.
public struct NoDetails: FailureDetails {
  /// Makes empty details.
  public init() {}
}
