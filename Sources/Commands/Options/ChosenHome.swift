import Backup
import Lazaret
import Platform
import Salvage
import SupportBundle
import SystemPackage

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

/// What a lookup by name says that finds nothing: that the name is of another kind, or known to another home.
extension ChosenHome {
  /// Runs what looks up a quarantined store by its name or path.
  ///
  /// - Parameter verb: the verb for a backup of that name, behind `lazaret`; `ID` in it stands for the name.
  /// - Throws: `not-in-quarantine`, with what the name is where it is known; what the body throws.
  func finding<Result>(quarantined name: FilePath, forBackup verb: String, _ body: () throws -> Result) throws -> Result
  {
    do {
      return try body()
    } catch var error as QuarantineError where error.kind == .notFound {
      guard name.components.count == 1, !name.isAbsolute else { throw error }
      try explain(&error, name, verb)
      throw error
    }
  }

  private func explain(_ error: inout QuarantineError, _ name: FilePath, _ verb: String) throws {
    if let id = BackupIdentifier(name.string), try id.isMarked || hasBackup(id) {
      error.detail = "\(id) is the name of a backup, and of no quarantined store"
      error.hint = "Use: lazaret \(verb.replacing("ID", with: id.description))\(option)"
      return
    }
    error.detail = "no store of that name is known in \(words)"
    // A catalogue there that cannot be read knows nothing; the error is told all the same.
    if isElsewhere, (try? Quarantines(home: ".").store(name)) != nil {
      error.detail += "; the catalogue in the current folder knows one"
      error.hint = "Work on that one with: --home ."
    } else {
      error.hint = "List what there is with: lazaret quarantine list\(option). \(Self.another)"
    }
  }

  /// Runs what looks up a backup, by its name where it has one.
  ///
  /// - Parameter verb: the verb for a quarantined store of that name, behind `lazaret`; `ID` in it stands for the name.
  /// - Throws: `no-such-backup`, with what the name is where it is known; what the body throws.
  func finding<Result>(
    backup id: BackupIdentifier?, forQuarantined verb: String = "quarantine show ID", _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch var error as BackupError where error.kind == .notFound {
      try explain(&error, id, verb)
      throw error
    }
  }

  private func explain(_ error: inout BackupError, _ id: BackupIdentifier?, _ verb: String) throws {
    if let id, !id.isMarked, try isQuarantined(id) {
      error.detail = "\(id) is the name of a quarantined store, and of no backup"
      error.hint = "Use: lazaret \(verb.replacing("ID", with: id.description))\(option)"
      return
    }
    // A backup there that cannot be read is not known; the error is told all the same.
    if isElsewhere, let id, (try? Backups(home: ".").find(id)) != nil {
      error.detail += " in \(words); one lies in Backups/ of the current folder"
      error.hint = "Work on that one with: --home ."
    } else if error.hint.hasPrefix("List what there is with: lazaret backup list") {
      error.hint = "List what there is with: lazaret backup list\(option). \(Self.another)"
    } else if error.hint.hasSuffix("lazaret backup undelete") {
      error.hint += option
    }
  }

  /// Runs what sends from the outbox of the home, whose errors end with the command to go on with.
  func sending<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as SendingError {
      if error.kind == .notFound {
        error.hint = "List what there is with: lazaret outbox list\(option). \(Self.another)"
      } else if error.hint.contains("lazaret outbox "), !error.hint.hasSuffix(".") {
        error.hint += option
      }
      throw error
    }
  }

  /// Runs what writes into the home; where that is the store's folder, and it cannot be written to, the error says how another
  /// home is given.
  func writing<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      throw naming(error)
    } catch let error as BackupError {
      throw naming(error)
    } catch let error as SupportBundleError {
      throw naming(error)
    }
  }

  private func naming<Kind>(_ error: Failure<Kind>) -> Failure<Kind> {
    guard reason == .store, ["permission-denied", "read-only-file-system"].contains(error.code) else { return error }
    var error = error
    error.hint += " The home is the store's folder. \(Self.another)"
    return error
  }

  private var isElsewhere: Bool { !Self.isSame(".", path) }

  private func hasBackup(_ id: BackupIdentifier) throws -> Bool {
    try Backups(home: path).catalogs().contains { catalog in catalog.backups.contains { $0.id == id } }
  }

  private func isQuarantined(_ id: BackupIdentifier) throws -> Bool {
    try Quarantines(home: path).stores().contains { $0.id == id.description }
  }
}

/// What earlier versions of the command line, whose home was the current folder, have kept there of a store.
struct OtherHome: Encodable {
  let path: PathText

  /// What of the store is in it, as paths in the folder.
  let holds: [String]

  /// The option by which a verb works on it.
  let option: String

  private var hasQuarantines: Bool { holds.contains(Self.catalogue) }
  private static let catalogue = "Quarantines.json"

  /// What lies in the current folder of a store; nil where that is nothing, and where the home is that folder.
  ///
  /// - Parameter store: the store; nil for all of the home's folder.
  init?(of store: FilePath?, besides home: FilePath) {
    guard !ChosenHome.isSame(".", home), let here = try? FileSystem().realPath(".") else { return nil }
    let holds = Self.holdings(here, of: store, home)
    guard !holds.isEmpty else { return nil }
    self.holds = holds
    path = PathText(here)
    option = "--home ."
  }

  /// What cannot be read is not told of: it is not what the verb was asked for, and nothing is done with it.
  private static func holdings(_ here: FilePath, of store: FilePath?, _ home: FilePath) -> [String] {
    var holds: [String] = []
    if let stores = try? Quarantines(home: here).stores(),
      stores.contains(where: { ChosenHome.isSame($0.files.folder.folder, home) })
    {
      holds.append(catalogue)
    }
    guard let store else { return holds }
    let backups = Backups(home: here)
    if let place = try? backups.place(of: store), let catalog = try? BackupCatalog(of: place),
      !catalog.backups.isEmpty
    {
      holds.append("Backups/\(place.path.lastComponent?.string ?? "")")
    }
    let kits = KitFolder(for: store, home: here)
    if let found = try? kits.kits(), !found.isEmpty {
      holds.append("Recovery/\(kits.path.lastComponent?.string ?? "")")
    }
    return holds
  }

  /// The note for a person, with the commands that show what is there.
  func note(besides home: FilePath) -> String {
    var commands = hasQuarantines ? ["lazaret quarantine list --home ."] : []
    if holds.contains(where: { $0.hasPrefix("Backups/") }) { commands.append("lazaret backup list --home .") }
    let see = commands.isEmpty ? "" : " See it with: \(commands.joined(separator: ", ")). "
    return """
      lazaret: the current folder has what earlier versions kept of it: \(printable(holds.joined(separator: ", "))).
        The home is now the store's folder, \(printable(home.string)), and nothing was moved.\(see.isEmpty ? " " : see)\
      To work on it, add: --home .

      """
  }
}
