import ArgumentParser
import Backup
import Lazaret
import Migration
import Platform
import SQLiteFormat
import SystemPackage

/// The exit codes of every verb; part of the command line's contract.
enum ExitStatus {
  static let failed = ExitCode(1)
  static let doubtful = ExitCode(2)
  static let unavailable = ExitCode(3)
  static let usage = ExitCode.validationFailure

  /// What every `--help` says of them.
  static let help = """
    EXIT CODES
      0   done
      1   failed
      2   finished, but something was lost or is doubtful; the output says what
      3   the store is unavailable: locked, forbidden, no space, newer than the app
      64  the command line was wrong
    """
}

extension ParsableCommand {
  /// Runs the body of a verb; an error is told on standard error, in words or as JSON, and becomes the exit code.
  func report(json: Bool, _ body: () throws -> Void) throws {
    do {
      try FileError.requireDescriptors(to: "begin")
      try body()
    } catch let code as ExitCode {
      try checkOutput()
      throw code
    } catch let slip as CommandLineSlip {
      Terminal.standardError.write(
        json ? slip.error.jsonLine : "\(Self.toldBy) \(slip.error.description)\n")
      throw ExitStatus.usage
    } catch let error as any ReportableError {
      Terminal.standardError.write(json ? error.jsonLine : "\(Self.toldBy) \(error.description)\n")
      if !json, let report = (error as? MigrationError)?.reportPath {
        Terminal.standardError.write("  The report is \(quoted(report)).\n")
      }
      // A folder where a file belongs, or a name that the model lacks, is a slip of the command line, whatever verb meets it.
      let slips = [FileError.Kind.isDirectory.rawValue, BackupError.Kind.unknownEntity.rawValue, "unknown-column"]
      if slips.contains(error.code) { throw ExitStatus.usage }
      throw error.isEnvironmental ? ExitStatus.unavailable : ExitStatus.failed
    } catch {
      // Every module has an error type of its own, so nothing should get here; if it does, its kind is all that is told,
      // for its words may hold a user's values.
      let error = CommandError(unforeseen: error)
      Terminal.standardError.write(json ? error.jsonLine : "\(Self.toldBy) \(error.description)\n")
      throw ExitStatus.failed
    }
    try checkOutput()
  }

  private static var toldBy: String { tinted("lazaret:", .bad) }

  private func checkOutput() throws {
    guard Terminal.hasLostOutput else { return }
    Terminal.standardError.write(
      "lazaret: the work was done, but its output could not be written [output-lost]. Check where it was to go.\n")
    throw ExitStatus.failed
  }
}

extension ReportableError {
  /// What programs are told of the error.
  var json: JSON.Value {
    let report = (self as? MigrationError)?.reportPath
    return .members(
      ("code", .string(code)), ("operation", .string(operation)), ("path", path.map { JSON.Value($0) }),
      ("detail", .string(detail)), ("hint", .string(hint)), ("report", report.map { JSON.Value($0) }))
  }

  /// The same on a line of standard error.
  var jsonLine: String { JSON.Value.members(("error", json)).text + "\n" }
}

extension JSON.Value {
  /// A path as text, with its bytes where the text cannot tell them.
  fileprivate init(_ path: FilePath) {
    let text = PathText(path)
    self = text.bytes.map { ["text": .string(text.text), "bytes": .string($0)] } ?? .string(text.text)
  }
}

/// An error in what was typed on the command line itself, which no store and no machine has a part in.
struct CommandLineSlip: Error {
  /// What is told of it.
  let error: any ReportableError

  /// Reads what was typed; an error of that is a slip.
  static func telling<Value>(_ read: () throws -> Value) throws -> Value {
    do {
      return try read()
    } catch let error as any ReportableError {
      throw CommandLineSlip(error: error)
    }
  }
}

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
