import StoreCoordination

/// The home that a verb works on, and how it was chosen.
struct ChosenHome {
  /// How a home is chosen.
  enum Reason {
    /// It was given with `--home`.
    case option

    case environment

    /// It is the folder of the store.
    case store

    case currentFolder
  }

  /// The folder, whether it is there or not.
  let path: FilePath

  let reason: Reason

  /// What earlier versions kept in the current folder of the same store; nil for nothing.
  let other: OtherHome?

  init(_ path: FilePath, because reason: Reason, other: OtherHome? = nil) {
    self.path = path
    self.reason = reason
    self.other = other
  }

  /// The folder in words, with how it was chosen where the command line does not say it.
  var words: String {
    // A folder that is not there is named as it was given.
    let whole = (try? FileSystem().realPath(path)) ?? path
    switch reason {
    case .option, .store: return printable(whole.string)
    case .environment: return "\(printable(whole.string)), as \(HomeOptions.variable) says"
    case .currentFolder: return "\(printable(whole.string)), the current folder"
    }
  }

  /// How another home is given, as a sentence.
  static let another = "Another home is given with --home or \(HomeOptions.variable)."

  /// What a command that names no store has to say to work on this home, with a space before it; empty where it does by itself.
  var option: String {
    let usual = HomeOptions.environment ?? "."
    return Self.isSame(usual, path) ? "" : " --home \(shellQuoted(path))"
  }

  /// The same for a command that names the store by its path.
  var optionBesidesStore: String { pathBesidesStore.map { " --home \(shellQuoted($0))" } ?? "" }

  /// The home from the root, for a command that names the store by its path; nil where the command takes it by itself.
  var pathBesidesStore: FilePath? {
    // A folder that is not there is named as it was given.
    reason == .option ? (try? FileSystem().realPath(path)) ?? path : nil
  }

  /// The home, if it is there; for verbs that look something up in it.
  ///
  /// - Parameter operation: what the verb does, as an infinitive phrase.
  /// - Throws: `home-missing`.
  func existing(to operation: String) throws -> ChosenHome {
    let kind = try FileSystem().status(of: path)?.kind
    guard kind != .directory else { return self }
    let name = reason == .environment ? "the folder that \(HomeOptions.variable) names" : "the home"
    throw CommandError(
      .homeMissing, operation: operation, path: path,
      detail: kind == nil ? "\(name) does not exist" : "\(name) is a file")
  }

  /// Tells on standard error what earlier versions kept elsewhere; JSON has a key for it.
  func tell(json: Bool) {
    guard !json, let other else { return }
    Terminal.standardError.write(other.note(besides: path))
  }

  /// A value as JSON, with what earlier versions kept elsewhere.
  func told(_ value: some Encodable & Sendable) -> JSON.Object { JSON.Object(value, ["otherHome": other]) }

  /// A listing as JSON, with the folder that was looked in.
  func listed(_ value: some Encodable & Sendable) -> JSON.Object {
    JSON.Object(value, ["home": PathText((try? FileSystem().realPath(path)) ?? path), "otherHome": other])
  }

  /// Whether two paths lead to one folder; paths that lead nowhere are compared as they are.
  static func isSame(_ left: FilePath, _ right: FilePath) -> Bool {
    let system = FileSystem()
    guard let (left, right) = try? (system.realPath(left), system.realPath(right)) else { return left == right }
    return left == right
  }
}
