import Foundation
import Platform
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

struct Terminal: Sendable {
  static let standardOutput = Terminal(descriptor: 1)
  static let standardError = Terminal(descriptor: 2)

  let descriptor: Int32

  var isInteractive: Bool { isatty(descriptor) == 1 }

  /// The columns for wrapping, by `COLUMNS` or the terminal, if any.
  var width: Int? {
    guard TextStyle.current.isForPeople else { return nil }
    // The minimum that fits a short word.
    if let told = ProcessInfo.processInfo.environment["COLUMNS"].flatMap({ Int($0) }), told >= 20 { return told }
    guard isInteractive else { return nil }
    var size = winsize()
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col >= 20 else { return 80 }
    return Int(size.ws_col)
  }

  /// Writes text for people, with control characters escaped.
  ///
  /// Shortens paths below the current folder, wraps lines and shows colours on a terminal. With `--quiet` standard
  /// output gets no text.
  func write(_ text: String) {
    let style = TextStyle.current
    guard style.isForPeople else { return writeContent(text) }
    if style.isQuiet, descriptor == Self.standardOutput.descriptor { return }
    let inColor = style.showsColor(isInteractive: isInteractive)
    let width = width
    // Lines are the only structure; we write no carriage returns.
    var lines: [String] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let line = style.shortened(String(line))
      for part in width.map({ TextWrapping.lines(of: line, width: $0) }) ?? [line] {
        lines.append(Tint.shown(part, inColor: inColor) { printable($0) })
      }
    }
    Self.standardError.clearLive()
    writeRaw(lines.joined(separator: "\n"))
  }

  func note(_ text: String) {
    if !TextStyle.current.isQuiet { write(text) }
  }

  /// Writes requested content (JSON, sources, keys, links), even with `--quiet`.
  func writeContent(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    Self.standardError.clearLive()
    writeRaw(lines.map { Tint.shown(String($0), inColor: false) { printable($0) } }.joined(separator: "\n"))
  }

  func write(json value: some Encodable, _ layout: JSON.Layout = .lines) throws {
    writeContent(try JSON.shown(value, layout))
  }

  /// Shows a line that the next one replaces; remove it before other output.
  func writeLive(_ line: String) {
    Self.hasLiveLine.withLock { $0 = true }
    writeRaw("\r\(line)\(Self.toEndOfLine)")
  }

  func clearLive() {
    let isThere = Self.hasLiveLine.withLock { isThere in
      defer { isThere = false }
      return isThere
    }
    if isThere { writeRaw("\r\(Self.toEndOfLine)") }
  }

  private static let hasLiveLine = Mutex(false)
  private static let toEndOfLine = "\u{1B}[K"

  private func writeRaw(_ text: String) {
    do {
      try FileDescriptor(rawValue: descriptor).writeAll(text.utf8)
    } catch {
      if descriptor == Self.standardOutput.descriptor { Self.lostOutput.withLock { $0 = true } }
    }
  }

  private static let lostOutput = Mutex(false)

  /// Whether standard output lost data, as on a full disk.
  static var hasLostOutput: Bool { lostOutput.withLock { $0 } }
}

/// The text style by options, environment and terminal.
///
/// Before a verb's options are read, text is unstyled.
struct TextStyle: Sendable {
  enum ColorChoice: String, CaseIterable, Sendable { case auto, always, never }

  /// Whether text is for people; JSON and text for other processes stay unchanged.
  var isForPeople = false

  var color = ColorChoice.auto

  /// Whether only errors, warnings and questions appear.
  var isQuiet = false

  var isVerbose = false

  var showsZeros = false

  /// The absolute current folder with a final slash; nil to keep paths whole.
  var folder: String?

  private static let shared = Mutex(TextStyle())

  static var current: TextStyle { shared.withLock { $0 } }

  static func change(_ change: (inout sending TextStyle) -> Void) { shared.withLock { change(&$0) } }

  /// Returns the current folder; nil if no displayed path can begin with it.
  static func currentFolder() -> String? {
    // A removed folder.
    guard let path = try? FileSystem().realPath(".").string, path != "/", printable(path) == path else { return nil }
    return path + "/"
  }

  func showsColor(isInteractive: Bool) -> Bool {
    switch color {
    case .always: return isForPeople
    case .never: return false
    case .auto:
      let environment = ProcessInfo.processInfo.environment
      // See https://no-color.org: any nonempty text.
      guard isForPeople, isInteractive, environment["NO_COLOR"]?.isEmpty ?? true else { return false }
      return environment["TERM"] != "dumb"
    }
  }

  /// Shortens every path below the current folder.
  ///
  /// A path begins at a word boundary; a name like an option keeps its `./`.
  func shortened(_ line: String) -> String {
    guard let folder, line.contains(folder) else { return line }
    var result = ""
    var rest = line[...]
    while let found = rest.range(of: folder) {
      let before = rest[..<found.lowerBound]
      rest = rest[found.upperBound...]
      result += before
      let isStart = (result.unicodeScalars.last).map { Self.opening.contains($0) } ?? true
      let next = rest.unicodeScalars.first
      if isStart, let next, !Self.closing.contains(next) {
        if next == "-" { result += "./" }
      } else {
        result += folder
      }
    }
    return result + rest
  }

  private static let opening: Set<Unicode.Scalar> = [" ", "\"", "'", "(", "[", "=", "\t", "\u{F}"]

  /// The characters that cannot continue a path after a folder's slash.
  private static let closing: Set<Unicode.Scalar> = [" ", "\"", "'", ")", "]", ",", "/", "\t", "\u{E}", "\u{F}"]
}

/// The meaning of text, shown as a colour.
enum Tint: Int, CaseIterable {
  case good, doubtful, bad, strong, faint

  /// The control sequence (ECMA-48, SGR), of the sixteen common colours.
  private var sequence: String {
    switch self {
    case .good: "\u{1B}[32m"
    case .doubtful: "\u{1B}[33m"
    case .bad: "\u{1B}[31m"
    case .strong: "\u{1B}[1m"
    case .faint: "\u{1B}[2m"
    }
  }

  /// The control characters around a tint, which displayed text lacks.
  ///
  /// A hostile store's text can only choose colours with them: `Terminal.write` escapes other control characters and
  /// ends tints at the line's end.
  fileprivate static let start: Unicode.Scalar = "\u{E}"
  fileprivate static let end: Unicode.Scalar = "\u{F}"
  fileprivate static let first = UInt32(UInt8(ascii: "a"))

  fileprivate init?(_ scalar: Unicode.Scalar) {
    guard scalar.value >= Self.first, let tint = Tint(rawValue: Int(scalar.value - Self.first)) else { return nil }
    self = tint
  }

  /// Shows a line with or without colours; escapes every other control character.
  static func shown(_ line: String, inColor: Bool, _ show: (String) -> String) -> String {
    guard line.unicodeScalars.contains(where: { $0 == start || $0 == end }) else { return show(line) }
    var result = ""
    var piece = String.UnicodeScalarView()
    var isOpen = false
    func flush() {
      result += show(String(piece))
      piece.removeAll()
    }
    var scalars = line.unicodeScalars.makeIterator()
    while let scalar = scalars.next() {
      if scalar == start, let code = scalars.next() {
        flush()
        guard inColor, let tint = Tint(code) else { continue }
        result += tint.sequence
        isOpen = true
      } else if scalar == end {
        flush()
        if isOpen { result += "\u{1B}[0m" }
        isOpen = false
      } else {
        piece.append(scalar)
      }
    }
    flush()
    return isOpen ? result + "\u{1B}[0m" : result
  }

  static func width(of text: String) -> Int {
    guard text.unicodeScalars.contains(where: { $0 == start || $0 == end }) else { return text.count }
    return shown(text, inColor: false) { $0 }.count
  }
}

func tinted(_ text: String, _ tint: Tint?) -> String {
  guard let tint, !text.isEmpty, let code = Unicode.Scalar(Tint.first + UInt32(tint.rawValue)) else { return text }
  return "\(Tint.start)\(code)\(text)\(Tint.end)"
}

/// A question before data leaves the machine or is deleted for good.
enum Confirmation {
  private static let attempts = 3

  /// Asks; `y` and `yes` agree, `n`, `no`, an empty line and Ctrl-C decline, in any case.
  ///
  /// - Returns: nil at the end of input, without a person to ask.
  private static func ask(_ question: String) -> Bool? {
    let wasListening = Interruption.isListening
    Interruption.listen()
    defer { if !wasListening { Interruption.endListening() } }
    for _ in 0..<attempts {
      Terminal.standardError.write("\(question) [y/N] ")
      guard let line = readLine() else {
        Terminal.standardError.write("\n")
        return Interruption.isRequested ? false : nil
      }
      switch line.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased() {
      case "y", "yes": return true
      case "n", "no", "": return false
      default: Terminal.standardError.write("Answer y or n.\n")
      }
    }
    return false
  }

  /// Reads a line from standard input, or until Ctrl-C.
  ///
  /// The library's function restarts after a signal. A signal just before the wait is seen after it.
  private static func readLine() -> String? {
    var bytes: [UInt8] = []
    while true {
      if Interruption.isRequested { return nil }
      var wait = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
      guard unsafe poll(&wait, 1, 100) > 0 else { continue }
      var byte: UInt8 = 0
      let count = unsafe read(STDIN_FILENO, &byte, 1)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count == 1 else { return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self) }
      if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
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
    guard !json, let isAgreed = ask(question) else { throw error() }
    guard isAgreed else {
      Terminal.standardError.write("Cancelled: nothing was \(undone).\n")
      throw ExitStatus.failed
    }
  }
}

/// Whether Ctrl-C was pressed: long work ends cleanly, a second Ctrl-C ends the process at once.
///
/// SIGTERM ends the process within a second, even within a long SQLite call. That is as safe as a kill: the next run
/// cleans up.
enum Interruption {
  /// A signal handler may write only this type and take no lock.
  nonisolated(unsafe) private static var isAsked: sig_atomic_t = 0

  nonisolated(unsafe) private static var listens = false

  static var isListening: Bool { unsafe listens }

  /// Starts listening for Ctrl-C and SIGTERM.
  static func listen() {
    unsafe listens = true
    for number in [SIGINT, SIGTERM] { _ = signal(number, interrupted) }
    // The parent may have blocked signals, which a child inherits.
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in [SIGINT, SIGTERM] { unsafe sigaddset(&signals, number) }
    unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  static func endListening() {
    for number in [SIGINT, SIGTERM] { _ = signal(number, SIG_DFL) }
    unsafe listens = false
  }

  static var isRequested: Bool { unsafe isAsked != 0 }

  fileprivate static func request() { unsafe isAsked = 1 }
}

/// The signal handler; little more than system calls is safe here.
private func interrupted(_ number: Int32) {
  Interruption.request()
  _ = signal(number, SIG_DFL)
  guard number == SIGTERM else { return }
  _ = signal(SIGALRM) { _ in _exit(128 + SIGTERM) }
  alarm(1)
}
