import StoreCoordination

/// What only the command line can go wrong at; every other error is that of the module it comes from.
typealias CommandError = Failure<CommandErrorKind>

/// Why the command line itself cannot do what was asked.
enum CommandErrorKind: String, FailureKind {
  /// The answer was not yes, or there is no terminal to ask at.
  case notConfirmed = "not-confirmed"

  /// The home that something is to be looked up in does not exist.
  case homeMissing = "home-missing"

  /// A key cannot be used; the code is that of the encryption's error, where that is the cause.
  case unusableKey = "age-recipient"

  /// The file of the secret key holds none.
  case unreadableIdentity = "age-identity"

  /// An error that no module of this project made.
  case unforeseen = "unforeseen-error"

  static let usualOperation = "do what was asked"

  var usualHint: String {
    switch self {
    case .notConfirmed: "Add --yes to do it without being asked."
    case .homeMissing: "Give the folder with --home or LAZARET_HOME."
    case .unusableKey: "Give a public key that begins with age1, or a file that lazaret key new or age-keygen wrote."
    case .unreadableIdentity: "Give the file with the secret key, as it was written when the key was made."
    case .unforeseen: "Please report this, with what you did."
    }
  }

  var standsForCause: Bool { self == .unusableKey }
}

extension CommandError {
  /// What the encryption says of a key, or of the one on a line of a file.
  init(key error: AgeError, path: FilePath?, line: Int? = nil) {
    let kind = Kind.unusableKey
    self.init(
      kind, because: error, operation: "read the key", path: path,
      detail: (line.map { "line \($0): " } ?? "") + error.detail, hint: kind.usualHint)
  }

  /// An error that no module of this project made; its kind is all that is told of it.
  init(unforeseen error: any Error) {
    self.init(
      .unforeseen, detail: "an error of the kind \(printable("\(type(of: error))")) came up that was not foreseen")
  }
}
