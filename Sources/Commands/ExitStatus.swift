import ArgumentParser
import Backup
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SupportBundle
import SwiftModelSources
import SystemPackage

/// The exit codes; part of the command line's contract.
enum ExitStatus {
  static let failed = ExitCode(1)
  static let doubtful = ExitCode(2)
  static let unavailable = ExitCode(3)
  static let usage = ExitCode.validationFailure

  /// The exit codes of a verb, for its help.
  static func codes(
    done: String = "done", failed: String = "failed",
    doubtful: String = "finished, but something was lost or is doubtful; the output says what",
    unavailable: String = "the store is unavailable: locked, forbidden, no space, newer than the app"
  ) -> String {
    """
    EXIT CODES
      0   \(done)
      1   \(failed)
      2   \(doubtful)
      3   \(unavailable)
      64  the command line was wrong
    """
  }
}

extension CommandConfiguration {
  /// Describes a verb or a group; the help ends with examples and exit codes.
  ///
  /// - Parameter examples: a line each; one may go on at an indented line.
  init(
    verb: String, abstract: String, usage: String? = nil, discussion: String = "", examples: String...,
    exitCodes: String = ExitStatus.codes(), subcommands: [any ParsableCommand.Type] = [],
    defaultSubcommand: (any ParsableCommand.Type)? = nil, aliases: [String] = []
  ) {
    let title = examples.count { $0.hasPrefix("lazaret") } == 1 ? "EXAMPLE" : "EXAMPLES"
    let listed = examples.isEmpty ? "" : ([title] + examples).joined(separator: "\n  ")
    self.init(
      commandName: verb, abstract: abstract, usage: usage,
      discussion: [discussion, listed, exitCodes].filter { !$0.isEmpty }.joined(separator: "\n\n"),
      subcommands: subcommands, defaultSubcommand: defaultSubcommand, aliases: aliases)
  }
}

/// A command that works, and reports its errors as its options say.
protocol Verb: ParsableCommand {
  var output: OutputOptions { get }

  func perform() throws
}

extension Verb { func run() throws { try report(json: output.json, perform) } }

extension ParsableCommand {
  /// Runs a verb; reports an error on standard error, in words or JSON, and exits with its code.
  func report(json: Bool, _ body: () throws -> Void) throws {
    do {
      try FileError.requireDescriptors(to: "begin")
      try body()
    } catch let code as ExitCode {
      try checkOutput()
      throw code
    } catch let slip as CommandLineSlip {
      Terminal.standardError.write(json ? slip.error.jsonLine : "\(Self.toldBy) \(slip.error.told)\n")
      throw ExitStatus.usage
    } catch let error as any ReportableError {
      Terminal.standardError.write(json ? error.jsonLine : "\(Self.toldBy) \(error.told)\n")
      if !json, let report = (error as? MigrationError)?.reportPath {
        Terminal.standardError.write("  The report is \(quoted(report)).\n")
      }
      // Usage errors, with any verb.
      let slips = [FileError.Kind.isDirectory.rawValue, BackupError.Kind.unknownEntity.rawValue, "unknown-column"]
      if slips.contains(error.code) { throw ExitStatus.usage }
      throw error.isEnvironmental ? ExitStatus.unavailable : ExitStatus.failed
    } catch {
      // Should not happen; only the type is shown, since the message may hold a user's values.
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
  var json: JSON.Value {
    let report = (self as? MigrationError)?.reportPath
    return .members(
      ("code", .string(code)), ("operation", .string(operation)), ("path", path.map { JSON.Value($0) }),
      ("detail", .string(detail)), ("hint", .string(OptionHints.worded(hint))),
      ("report", report.map { JSON.Value($0) }))
  }

  var jsonLine: String { JSON.Value.members(("error", json)).text + "\n" }
}

extension JSON.Value {
  fileprivate init(_ path: FilePath) {
    let text = PathText(path)
    self = text.bytes.map { ["text": .string(text.text), "bytes": .string($0)] } ?? .string(text.text)
  }
}

struct CommandLineSlip: Error {
  let error: any ReportableError

  /// Runs `read` and rethrows its errors as usage errors.
  static func telling<Value>(_ read: () throws -> Value) throws -> Value {
    do { return try read() } catch let error as any ReportableError { throw CommandLineSlip(error: error) }
  }
}

typealias CommandError = Failure<CommandErrorKind>

enum CommandErrorKind: String, FailureKind {
  /// No confirmation, or no terminal to ask.
  case notConfirmed = "not-confirmed"

  case homeMissing = "home-missing"

  /// An unusable key; the code is that of the age error, if any.
  case unusableKey = "age-recipient"

  case unreadableIdentity = "age-identity"

  case unforeseen = "unforeseen-error"

  var usualOperation: String { "do what was asked" }

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
  /// Wraps the age error of a key, or of a line of a key file.
  init(key error: FileError, path: FilePath?, line: Int? = nil) {
    let kind = Kind.unusableKey
    self.init(
      kind, because: error, operation: "read the key", path: path,
      detail: (line.map { "line \($0): " } ?? "") + error.detail, hint: kind.usualHint)
  }

  /// Wraps an error of unknown type; shows only its type.
  init(unforeseen error: any Error) {
    self.init(
      .unforeseen, detail: "an error of the kind \(printable("\(type(of: error))")) came up that was not foreseen")
  }
}

/// The options that follow the hints of the libraries, which know none.
package enum OptionHints {
  /// The options of a hint, or of the sentence that ends one.
  package static let options: KeyValuePairs<String, String> = [
    BackupErrorKind.ambiguous.usualHint: "--of",
    BackupErrorKind.encryptionMissing.usualHint: "--encrypt-to age1…, --no-encryption",
    BackupErrorKind.giveModel: "--model",
    BackupErrorKind.locked.usualHint: "--identity FILE",
    BackupErrorKind.notFound.usualHint: "--home, \(HomeOptions.variable)",
    BackupErrorKind.orWhatIsLeft: "--salvage",
    BackupErrorKind.otherGeneration.usualHint: "--trust-backup",
    BackupErrorKind.otherHome: "--home",
    BackupErrorKind.otherPath: "--to",
    BackupErrorKind.otherStore.usualHint: "--of, --other-store",
    LazaretErrorKind.givePlace: "--to",
    LazaretErrorKind.listVersion: "--versions, --lock",
    LazaretErrorKind.notInQuarantine.usualHint: "--home, \(HomeOptions.variable)",
    LazaretErrorKind.placeTaken.usualHint: "--replace, --to",
    LintListing.releasedSteps: "--all",
    MigrationErrorKind.lockInvalid.usualHint: "--write-lock",
    MigrationRefusal.acceptLoss: "--on-migration-loss migrate",
    ModelErrorKind.sourcesNotBuiltIn.usualHint: "swift build --traits SwiftSources",
    ModelErrorKind.unknownType.usualHint: "--types A,B",
    ModelLock.writeAnew: "lazaret model lint --lock <file> --write-lock --versions V1,V2",
    PersistentStoreErrorKind.newerVersion.usualHint: "--versions, --lock",
    PersistentStoreErrorKind.unknownDamage.usualHint: "lazaret damage --list",
    SalvageErrorKind.knownDonor: "--trust-backup",
    SchemaLint.freezeSources: "--version-name <name> --schema <name>",
    SchemaLint.freezeStore: "--schema <name>",
    SourceFinding.giveFlags: "--define",
    SourceFinding.givePlatform: "--platform",
    SourceFinding.nameTypes: "--types A,B",
    SupportBundleErrorKind.answer.usualHint: "--put",
    SupportBundleErrorKind.notInOutbox.usualHint: "--home, \(HomeOptions.variable)",
    SupportBundleErrorKind.store.usualHint: "--level",
    SupportBundleErrorKind.unauthorized.usualHint: "--token-file, LAZARET_TOKEN",
    SupportBundleErrorKind.wholeAddress: "--to",
    SupportBundleErrors.reportIt: "without --keep",
    UnpackedBackup.otherSource: "--home",
    VerdictReason.listVersion: "--versions, --lock",
    VerdictReason.repairRecords: "lazaret repair --data",
  ]

  /// Puts the options into the hint, before its full stop.
  package static func worded(_ hint: String) -> String {
    options.reduce(hint) { $0.replacing($1.key, with: "\($1.key.dropLast()) (\($1.value)).") }
  }
}

extension ReportableError {
  /// The error on one line, with options in its hint.
  var told: String { OptionHints.worded(description) }
}
