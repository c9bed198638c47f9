import ArgumentParser
import StoreCoordination

/// A question to the person at the terminal before something leaves the machine or is deleted for good.
enum Confirmation {
  /// What was answered.
  enum Answer {
    case yes
    case no

    /// The input ended, so that there was no person to ask.
    case none
  }

  /// How often an answer that is neither yes nor no is asked for again.
  private static let attempts = 3

  /// Asks; `y` and `yes` agree, `n`, `no` and an empty line do not, in small letters or capitals.
  static func ask(_ question: String, read: () -> String? = { readLine() }) -> Answer {
    for _ in 0..<attempts {
      Terminal.standardError.write("\(question) [y/N] ")
      guard let line = read() else {
        Terminal.standardError.write("\n")
        return .none
      }
      switch line.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased() {
      case "y", "yes": return .yes
      case "n", "no", "": return .no
      default: Terminal.standardError.write("Answer y or n.\n")
      }
    }
    return .no
  }

  /// Asks, and ends the verb where the person did not agree.
  ///
  /// - Parameters:
  ///   - question: what is asked, with a question mark.
  ///   - undone: what was not done, as words that follow "nothing was", such as `sent`.
  ///   - error: the error for programs, and for where no person could be asked.
  /// - Throws: the exit code 1 where the answer was no, after saying so; the error where there was none.
  static func require(_ question: String, undone: String, json: Bool, or error: @autoclosure () -> CommandError) throws
  {
    guard !json else { throw error() }
    switch ask(question) {
    case .yes: return
    case .no:
      Terminal.standardError.write("Cancelled: nothing was \(undone).\n")
      throw ExitStatus.failed
    case .none: throw error()
    }
  }
}
