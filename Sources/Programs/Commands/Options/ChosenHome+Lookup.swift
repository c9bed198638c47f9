import Sending
import StoreCoordination

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
