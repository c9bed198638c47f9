public import Failures

/// Something that is no age file, or none that can be opened or made.
///
/// The detail never holds anything of what was encrypted, nor of a secret key.
public typealias AgeError = Failure<AgeErrorKind>

/// Why something is no age file, or none that can be opened or made.
public enum AgeErrorKind: String, FailureKind {
  /// A recipient (`age1…`) is none.
  case recipient = "age-recipient"

  /// An identity (`AGE-SECRET-KEY-1…`) is none.
  case identity = "age-identity"

  /// The header is not that of an age file.
  case header = "age-header"

  /// The header is longer, or has more stanzas, than any real one.
  case headerTooLarge = "age-header-too-large"

  /// No identity that was given opens the file.
  case noIdentity = "age-no-identity"

  /// The header was altered after it was written.
  case headerAltered = "age-header-altered"

  /// The content was altered, or is cut off.
  case payload = "age-payload"

  /// The armour around the file is damaged.
  case armor = "age-armor"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "use the age encryption"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .recipient: "Give the public key that begins with age1, as the vendor published it."
    case .identity: "Give the file with the secret key, as it was written when the key was made."
    case .header, .armor: "Check that the whole file arrived, and that it is one that was encrypted with age."
    case .headerTooLarge: "Encrypt it to fewer recipients."
    case .noIdentity: "Give the secret key that belongs to one of the recipients it was encrypted to."
    case .headerAltered, .payload: "Ask for the file again: what arrived is not what was sent."
    }
  }
}

extension AgeError {
  /// An error in the usual words but for what is wrong, a sentence without its full stop.
  init(_ kind: Kind, _ detail: String) { self.init(kind, detail: detail) }
}
