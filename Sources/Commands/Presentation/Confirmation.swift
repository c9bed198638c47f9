import ArgumentParser

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A question to the person at the terminal before something leaves the machine or is deleted for good.
enum Confirmation {
  enum Answer {
    case yes
    case no

    /// The input ended, so that there was no person to ask.
    case none

    case cancelled
  }

  /// A line that was typed, or why there is none.
  enum Line {
    case text(String)
    case end
    case cancelled
  }

  /// How often an answer that is neither yes nor no is asked for again.
  private static let attempts = 3

  /// Asks; `y` and `yes` agree, `n`, `no` and an empty line do not, in small letters or capitals.
  static func ask(_ question: String, read: () -> Line = { readLine() }) -> Answer {
    let wasListening = Interruption.isListening
    Interruption.listen()
    defer { if !wasListening { Interruption.endListening() } }
    for _ in 0..<attempts {
      Terminal.standardError.write("\(question) [y/N] ")
      let line: String
      switch read() {
      case .text(let text): line = text
      case .end:
        Terminal.standardError.write("\n")
        return .none
      case .cancelled:
        Terminal.standardError.write("\n")
        return .cancelled
      }
      switch line.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased() {
      case "y", "yes": return .yes
      case "n", "no", "": return .no
      default: Terminal.standardError.write("Answer y or n.\n")
      }
    }
    return .no
  }

  /// Reads a line from standard input; ends where Ctrl-C is pressed meanwhile.
  ///
  /// The library's own reading begins anew after a signal. A signal that comes just before the wait is seen after it.
  private static func readLine() -> Line {
    var bytes: [UInt8] = []
    while true {
      if Interruption.isRequested { return .cancelled }
      var wait = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
      guard unsafe poll(&wait, 1, 100) > 0 else { continue }
      var byte: UInt8 = 0
      let count = unsafe read(STDIN_FILENO, &byte, 1)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count == 1 else { return bytes.isEmpty ? .end : .text(String(decoding: bytes, as: UTF8.self)) }
      if byte == UInt8(ascii: "\n") { return .text(String(decoding: bytes, as: UTF8.self)) }
      bytes.append(byte)
    }
  }

  /// Asks, and ends the verb where the person did not agree.
  ///
  /// - Parameters:
  ///   - question: what is asked, with a question mark.
  ///   - undone: what was not done, as words that follow "nothing was", such as `sent`.
  ///   - error: the error for programs, and for where no person could be asked.
  /// - Throws: the exit code 1 where the answer was no or Ctrl-C, after saying so; the error where there was none.
  static func require(_ question: String, undone: String, json: Bool, or error: @autoclosure () -> CommandError) throws
  {
    guard !json else { throw error() }
    switch ask(question) {
    case .yes: return
    case .no, .cancelled:
      Terminal.standardError.write("Cancelled: nothing was \(undone).\n")
      throw ExitStatus.failed
    case .none: throw error()
    }
  }
}
