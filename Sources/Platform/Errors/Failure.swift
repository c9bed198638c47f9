public import SystemPackage

/// An error to act on: a stable code, the operation, the place and a remedy.
///
/// ``Failure`` is the only conforming type. No string holds values of a user's records.
public protocol ReportableError: Error, Sendable, CustomStringConvertible {
  associatedtype Kind: FailureKind

  var kind: Kind { get }

  /// A stable, machine-readable word of the command line's contract, such as `file-not-found`.
  var code: String { get }

  /// The failed operation, as an infinitive phrase: `read the store`.
  var operation: String { get }

  /// The file or folder concerned.
  var path: FilePath? { get }

  /// The problem, in one plain sentence without a full stop.
  var detail: String { get }

  /// The next step for the reader, as a full sentence.
  var hint: String { get }

  /// The other module's error that led to this one.
  var cause: (any ReportableError)? { get }

  /// Whether the environment (a lock, a permission, a full disk) is at fault, not the store.
  ///
  /// Such an error never leads to a quarantine.
  var isEnvironmental: Bool { get }
}

extension ReportableError {
  /// The error on one line: `cannot read the store "App.sqlite": … [code]. Hint`.
  public var description: String {
    let place = path.map { " \(quoted($0))" } ?? ""
    return "cannot \(operation)\(place): \(detail) [\(code)]. \(hint)"
  }
}

/// Returns an error's type name in code, such as `FileError`, without its values.
package func typeName(of error: any Error) -> String {
  func name(_ type: Any.Type) -> String { String(describing: type) }
  guard let error = error as? any ReportableError else { return name(type(of: error)) }
  // By convention a `FileError` is a failure of `FileErrorKind`.
  let kinds = name(type(of: error.kind))
  return kinds.hasSuffix("Kind") ? String(kinds.dropLast(4)) : kinds
}

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
    _ kind: Kind, operation: String? = nil, path: FilePath? = nil, detail: String, hint: String? = nil,
    details: Kind.Details = Kind.Details()
  ) {
    self.kind = kind
    self.operation = operation ?? kind.usualOperation
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
/// The raw values are the codes of the command line's contract. The module's errors are `Failure`s of these kinds,
/// such as `KitError`, a type alias of `Failure<KitErrorKind>`.
public protocol FailureKind: Hashable, Sendable {
  /// Further facts of the module's failures.
  associatedtype Details: FailureDetails = NoDetails

  /// The default operation, as an infinitive phrase.
  var usualOperation: String { get }

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

/// Runs `body` and wraps its errors, as in `try wrapping(KitError.init) { () throws(FileError) in try file.close() }`.
@inlinable package func wrapping<Value: ~Copyable, Inner: Error, Outer: Error>(
  _ wrap: (Inner) -> Outer, _ body: () throws(Inner) -> Value
) throws(Outer) -> Value {
  do throws(Inner) { return try body() } catch { throw wrap(error) }
}
