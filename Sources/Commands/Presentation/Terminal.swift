import Foundation
import Platform

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
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let written = unsafe bytes.withUnsafeBytes { unsafe systemWrite(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else {
        if descriptor == Self.standardOutput.descriptor { Self.lostOutput.withLock { $0 = true } }
        return
      }
      bytes = bytes.dropFirst(written)
    }
  }

  private static let lostOutput = Mutex(false)

  /// Whether standard output lost data, as on a full disk.
  static var hasLostOutput: Bool { lostOutput.withLock { $0 } }
}

private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
  guard let start = unsafe start else { return 0 }
  return unsafe write(descriptor, start, count)
}
