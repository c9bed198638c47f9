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
