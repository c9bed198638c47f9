import ArgumentParser
import Backup
import Lazaret
import Platform
import SupportBundle
import SystemPackage

/// The home, with backups and the catalogue of quarantined stores.
struct HomeOptions: ParsableArguments {
  static let variable = "LAZARET_HOME"

  @Option(
    help: .text(
      "The folder with Backups/ and the catalogue of quarantined stores. If not given, LAZARET_HOME, else the store's folder; the current one where no store is named.",
      "dir"))
  var home: PathArgument?

  static var environment: FilePath? { FilePath(environment: variable) }

  func current() -> ChosenHome { given ?? ChosenHome(".", because: .currentFolder) }

  func of(store: FilePath) -> ChosenHome {
    if let given { return given }
    // The verb reports a missing store; use the path's folder.
    let folder = (try? StoreFileSet.locate(store, in: FileSystem()).folder) ?? store.folder
    return ChosenHome(Self.home(in: folder), because: .store)
  }

  func of(place: FilePath) throws(FileError) -> ChosenHome {
    let system = FileSystem()
    guard try system.status(of: place)?.kind == .directory else { return of(store: place) }
    if let given { return given }
    return ChosenHome(Self.home(in: try system.realPath(place)), because: .store)
  }

  /// - Throws: `home-missing` for a lookup by name.
  func of(quarantined name: FilePath) throws -> ChosenHome {
    if name.components.count > 1 || name.isAbsolute { return of(store: name) }
    return try current().existing(to: "find the quarantined store")
  }

  private var given: ChosenHome? {
    if let home { return ChosenHome(home.path, because: .option) }
    return Self.environment.map { ChosenHome($0, because: .environment) }
  }

  private static func home(in folder: FilePath) -> FilePath { QuarantineFolder.isOne(folder) ? folder.folder : folder }
}

struct ChosenHome {
  enum Reason { case option, environment, store, currentFolder }

  let path: FilePath

  let reason: Reason

  init(_ path: FilePath, because reason: Reason) {
    self.path = path
    self.reason = reason
  }

  /// The folder, with the reason unless it was given.
  var words: String {
    switch reason {
    case .option, .store: printable(wholePath.string)
    case .environment: "\(printable(wholePath.string)), as \(HomeOptions.variable) says"
    case .currentFolder: "\(printable(wholePath.string)), the current folder"
    }
  }

  static let another = "Another home is given with --home or \(HomeOptions.variable)."

  /// The option, after a space, that selects this home in a command without a store; empty if not needed.
  var option: String {
    let usual = HomeOptions.environment ?? "."
    return Self.isSame(usual, path) ? "" : " --home \(shellQuoted(path))"
  }

  /// The option for a command with a store's path.
  var optionBesidesStore: String { pathBesidesStore.map { " --home \(shellQuoted($0))" } ?? "" }

  /// The absolute home for a command with a store's path; nil if that implies it.
  var pathBesidesStore: FilePath? { reason == .option ? wholePath : nil }

  var wholePath: FilePath { Self.whole(path) }

  /// The absolute path; a missing folder appears as given.
  static func whole(_ path: FilePath) -> FilePath { (try? FileSystem().realPath(path)) ?? path }

  /// Returns the home if it exists, for lookups.
  ///
  /// - Parameter operation: an infinitive phrase.
  /// - Throws: `home-missing`.
  func existing(to operation: String) throws -> ChosenHome {
    let kind = try FileSystem().status(of: path)?.kind
    guard kind != .directory else { return self }
    let name = reason == .environment ? "the folder that \(HomeOptions.variable) names" : "the home"
    throw CommandError(
      .homeMissing, operation: operation, path: path,
      detail: kind == nil ? "\(name) does not exist" : "\(name) is a file")
  }

  func listed(_ value: some Encodable & Sendable) -> JSON.Object { JSON.Object(value, ["home": PathText(wholePath)]) }

  /// Whether two paths lead to one folder; missing ones are compared literally.
  static func isSame(_ left: FilePath, _ right: FilePath) -> Bool {
    let system = FileSystem()
    guard let (left, right) = try? (system.realPath(left), system.realPath(right)) else { return left == right }
    return left == right
  }

  // MARK: Errors of lookups by name that suggest another kind or home

  /// - Parameter verb: the verb for a backup of that name, after `lazaret`, with `ID` for the name.
  /// - Throws: `not-in-quarantine`, or the body's error.
  func finding<Result>(quarantined name: FilePath, forBackup verb: String, _ body: () throws -> Result) throws -> Result
  {
    do {
      return try body()
    } catch var error as LazaretError where error.kind == .notInQuarantine {
      guard name.components.count == 1, !name.isAbsolute else { throw error }
      try explain(&error, name, verb)
      throw error
    }
  }

  private func explain(_ error: inout LazaretError, _ name: FilePath, _ verb: String) throws {
    if let id = BackupIdentifier(name.string), try id.isMarked || hasBackup(id) {
      error.detail = "\(id) is the name of a backup, and of no quarantined store"
      error.hint = "Use: lazaret \(verb.replacing("ID", with: id.description))\(option)"
      return
    }
    error.detail = "no store of that name is known in \(words)"
    // Ignore an unreadable catalogue there; the error is thrown regardless.
    if isElsewhere, (try? Quarantines(home: ".").store(name)) != nil {
      error.detail += "; the catalogue in the current folder knows one"
      error.hint = "Work on that one with: --home ."
    } else {
      error.hint = "List what there is with: lazaret quarantine list\(option). \(Self.another)"
    }
  }

  /// - Parameter verb: the verb for a quarantined store of that name, after `lazaret`, with `ID` for the name.
  /// - Throws: `no-such-backup`, or the body's error.
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
    if let id, !id.isMarked, try Quarantines(home: path).stores().contains(where: { $0.id == id.description }) {
      error.detail = "\(id) is the name of a quarantined store, and of no backup"
      error.hint = "Use: lazaret \(verb.replacing("ID", with: id.description))\(option)"
      return
    }
    // Ignore an unreadable backup there; the error is thrown regardless.
    if isElsewhere, let id, (try? Backups(home: ".").find(id)) != nil {
      error.detail += " in \(words); one lies in Backups/ of the current folder"
      error.hint = "Work on that one with: --home ."
    } else if error.hint == BackupErrorKind.notFound.usualHint {
      error.hint = "List what there is with: lazaret backup list\(option). \(Self.another)"
    } else if error.hint.hasSuffix("lazaret backup undelete") {
      error.hint += option
    }
  }

  /// Runs a transfer from the home's outbox; errors end with the command to resume.
  func sending<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch var error as SupportBundleError {
      if error.kind == .notInOutbox {
        error.hint = "List what there is with: lazaret outbox list\(option). \(Self.another)"
      } else if error.hint.contains("lazaret outbox "), !error.hint.hasSuffix(".") {
        error.hint += option
      }
      throw error
    }
  }

  /// Runs writes to the home; if the store's folder is unwritable, the error explains `--home`.
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
}
