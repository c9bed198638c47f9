package import StoreFiles
internal import SystemPackage

/// A rehearsal of damage that cannot be made.
package typealias DamageError = Failure<DamageErrorKind>

/// Why a rehearsal of damage cannot be made.
package enum DamageErrorKind: String, FailureKind {
  /// There is no such kind of damage.
  case unknownDamage = "unknown-damage"

  /// The store has nothing that this kind could damage.
  case nothingToDamage = "nothing-to-damage"

  /// Something is at the place of the copy.
  case placeTaken = "place-taken"

  /// What was being done, where a failure does not say.
  package static let usualOperation = "damage the store"

  /// What the reader can do next, where a failure does not say.
  package var usualHint: String {
    switch self {
    case .unknownDamage: "See lazaret damage --list."
    case .nothingToDamage: "Choose another kind, or another store."
    case .placeTaken: "Choose another name, or remove it first."
    }
  }
}

extension DamageError {
  static func unknown(_ text: String, _ detail: String) -> DamageError {
    DamageError(.unknownDamage, operation: "understand the damage \"\(printable(text))\"", detail: detail)
  }

  static func nothing(_ kind: DamageKind, _ path: FilePath, _ detail: String) -> DamageError {
    DamageError(.nothingToDamage, operation: "do the damage \"\(kind)\"", path: path, detail: detail)
  }
}
