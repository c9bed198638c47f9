struct HTTPAnswer: Sendable {
  let status: Int

  /// The fields, by their names in lower case; of several of one name the last.
  let fields: [String: String]

  let body: [UInt8]

  /// Whether the body was longer than was asked for.
  var isCutOff = false

  /// Whether the server did what it was asked for.
  var isSuccess: Bool { (200...299).contains(status) }

  /// The word that a refusal has for what went wrong, such as `NoSuchKey`; nil where it has none that is one.
  var word: String? {
    guard let root = XMLElement(body), root.name == "Error", let word = root.text("Code"), word.utf8.count <= 64,
      !word.isEmpty, word.utf8.allSatisfy({ $0 < 128 && Character(Unicode.Scalar($0)).isLetter })
    else { return nil }
    return word
  }
}

struct TransportFailure: Error {
  /// What kind of failure it was.
  enum Kind: Sendable {
    case unreachable
    case timeOut
    case certificate
    case tooMuch
    case unusable
    case file
  }

  /// What kind of failure it was.
  let kind: Kind

  /// The number that libcurl gives it.
  let code: Int

  /// The words that libcurl has for it, which may name the host.
  var words = ""
}
