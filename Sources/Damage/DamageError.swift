public import StoreFiles
public import SystemPackage

/// A rehearsal of damage that cannot be made.
public struct DamageError: ReportableError {
  /// What kind of failure it was.
  public enum Kind: String, Sendable {
    /// There is no such kind of damage.
    case unknownDamage = "unknown-damage"

    /// The store has nothing that this kind could damage.
    case nothingToDamage = "nothing-to-damage"

    /// Something is at the place of the copy.
    case placeTaken = "place-taken"
  }

  /// What kind of failure it was.
  public var kind: Kind

  /// What was being done, as an infinitive phrase.
  public var operation: String

  /// The store or the copy.
  public var path: FilePath?

  /// What went wrong, in one sentence without a full stop.
  public var detail: String

  /// What to do next, as a full sentence.
  public var hint: String

  /// The kind's stable word.
  public var code: String { kind.rawValue }

  static func unknown(_ text: String, _ detail: String) -> DamageError {
    DamageError(
      kind: .unknownDamage, operation: "understand the damage \"\(printable(text))\"", path: nil, detail: detail,
      hint: "See lazaret damage --list.")
  }

  static func nothing(_ kind: DamageKind, _ path: FilePath, _ detail: String) -> DamageError {
    DamageError(
      kind: .nothingToDamage, operation: "do the damage \"\(kind)\"", path: path, detail: detail,
      hint: "Choose another kind, or another store.")
  }
}
