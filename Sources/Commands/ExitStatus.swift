import ArgumentParser
import Lazaret

/// The exit codes of every verb; part of the command line's contract.
enum ExitStatus {
  static let failed = ExitCode(1)
  static let doubtful = ExitCode(2)
  static let unavailable = ExitCode(3)

  /// What every `--help` says of them.
  static let help = """
    EXIT CODES
      0   done
      1   failed
      2   finished, but something was lost or is doubtful; the output says what
      3   the store is unavailable: locked, out of reach, forbidden, no space, or newer than the app
      64  the command line was wrong
    """
}

extension ParsableCommand {
  /// Runs the body of a verb; an error is told on standard error, in words or as JSON, and becomes the exit code.
  func report(json: Bool, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as any ReportableError {
      Terminal.standardError.write(json ? ErrorJSON(error).line : "lazaret: \(error.description)\n")
      throw error.isEnvironmental ? ExitStatus.unavailable : ExitStatus.failed
    }
  }
}

/// An error as JSON, on standard error.
struct ErrorJSON: Encodable {
  struct Body: Encodable {
    var code: String
    var operation: String
    var path: String?
    var detail: String
    var hint: String
  }

  var error: Body

  init(_ error: any ReportableError) {
    self.error = Body(
      code: error.code, operation: error.operation, path: error.path?.string, detail: error.detail, hint: error.hint)
  }

  var line: String { JSONText.line(self) }
}
