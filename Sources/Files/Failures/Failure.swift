public import SystemPackage

/// A failure of one module's kinds; each module has a name of its own for it, such as `FileError`.
///
/// The members of ``details`` can be read and set as members of the failure itself.
@dynamicMemberLookup
public struct Failure<Kind: FailureKind>: ReportableError {
  /// All that a failure says.
  private struct Content: Sendable {
    var kind: Kind
    var operation: String
    var path: FilePath?
    var detail: String
    var hint: String
    var details: Kind.Details
    let cause: (any ReportableError)?
  }

  private final class Box: Sendable {
    let content: Content

    init(_ content: Content) { self.content = content }
  }

  /// One reference: errors are handed from function to function far more often than they are made, and each of these places would copy
  /// all of the content.
  private var box: Box

  private var content: Content {
    get { box.content }
    set { box = Box(newValue) }
  }

  /// What kind of failure it was.
  public var kind: Kind {
    get { content.kind }
    set { content.kind = newValue }
  }

  /// What was being done, as an infinitive phrase.
  public var operation: String {
    get { content.operation }
    set { content.operation = newValue }
  }

  /// The file or folder it was being done to, where there is one.
  public var path: FilePath? {
    get { content.path }
    set { content.path = newValue }
  }

  /// What went wrong, in one plain sentence without a full stop and without values of records.
  public var detail: String {
    get { content.detail }
    set { content.detail = newValue }
  }

  /// What the reader can do next, as a full sentence.
  public var hint: String {
    get { content.hint }
    set { content.hint = newValue }
  }

  /// What the module's failures say beyond that.
  public var details: Kind.Details {
    get { content.details }
    set { content.details = newValue }
  }

  /// The error of another module that led to this one, where one did.
  public var cause: (any ReportableError)? { content.cause }

  /// The stable word for what went wrong: that of the details where they have one, of the cause where the failure stands
  /// for it, else of the kind.
  public var code: String { details.code ?? represented?.code ?? kind.code }

  /// Whether the environment is at fault, as the details, the cause that the failure stands for, or the kind say.
  public var isEnvironmental: Bool {
    details.isEnvironmental ?? (kind.isEnvironmental || represented?.isEnvironmental ?? false)
  }

  /// The cause, where the failure stands for it.
  private var represented: (any ReportableError)? { kind.standsForCause ? cause : nil }

  /// A failure of a kind, in the kind's usual words where no others are given.
  public init(
    _ kind: Kind, operation: String = Kind.usualOperation, path: FilePath? = nil, detail: String, hint: String? = nil,
    details: Kind.Details = Kind.Details()
  ) {
    box = Box(
      Content(
        kind: kind, operation: operation, path: path, detail: detail, hint: hint ?? kind.usualHint, details: details,
        cause: nil))
  }

  /// A failure that another module's error led to, in that error's words where no others are given.
  public init(
    _ kind: Kind, because cause: any ReportableError, operation: String? = nil, path: FilePath? = nil,
    detail: String? = nil, hint: String? = nil, details: Kind.Details = Kind.Details()
  ) {
    box = Box(
      Content(
        kind: kind, operation: operation ?? cause.operation, path: path ?? cause.path, detail: detail ?? cause.detail,
        hint: hint ?? cause.hint, details: details, cause: cause))
  }

  /// A member of the details.
  public subscript<Value>(dynamicMember member: WritableKeyPath<Kind.Details, Value>) -> Value {
    get { details[keyPath: member] }
    set { details[keyPath: member] = newValue }
  }
}
