import ArgumentParser
import StoreCoordination

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
