import ArgumentParser

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// A question before data leaves the machine or is deleted for good.
enum Confirmation {
  enum Answer {
    case yes
    case no

    /// The end of input: no person to ask.
    case none

    case cancelled
  }

  enum Line {
    case text(String)
    case end
    case cancelled
  }

  private static let attempts = 3

  /// Asks; `y` and `yes` agree, `n`, `no` and an empty line decline, in any case.
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

  /// Reads a line from standard input, or until Ctrl-C.
  ///
  /// The library's function restarts after a signal. A signal just before the wait is seen after it.
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

  /// Asks and ends the verb unless the person agrees.
  ///
  /// - Parameters:
  ///   - undone: a participle after "nothing was", such as `sent`.
  ///   - error: the error for programs or without a person.
  /// - Throws: exit code 1 after no or Ctrl-C, with a message; else the error.
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
