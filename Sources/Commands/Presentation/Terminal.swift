import Compatibility
import StoreCoordination

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// One of the process's two output streams.
struct Terminal: Sendable {
  static let standardOutput = Terminal(descriptor: 1)
  static let standardError = Terminal(descriptor: 2)

  /// Whether a person can be asked.
  static var standardInputIsInteractive: Bool { isatty(0) == 1 }

  let descriptor: Int32

  /// Whether a person is looking at it.
  var isInteractive: Bool { isatty(descriptor) == 1 }

  /// Writes text; what could steer a terminal is shown and not obeyed, whatever the text was made of.
  func write(_ text: String) {
    // Lines are the only structure; a carriage return is not one of ours.
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    writeRaw(lines.map { printable(String($0)) }.joined(separator: "\n"))
  }

  /// Writes a value as JSON.
  func write(json value: some Encodable, _ layout: JSON.Layout = .lines) throws {
    write(try JSON.shown(value, layout))
  }

  /// Writes text as it is.
  func writeRaw(_ text: String) {
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

  /// Whether something could not be written to standard output, for instance to a file on a full disk.
  static var hasLostOutput: Bool { lostOutput.withLock { $0 } }
}

private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
  guard let start = unsafe start else { return 0 }
  return unsafe write(descriptor, start, count)
}

/// A line on standard error that shows how far long work is; nothing where standard error is no terminal.
final class ProgressLine: Sendable {
  private let isShown = Terminal.standardError.isInteractive
  private let state = Mutex(State())

  private struct State {
    var words = ""
    var percent = -1
    var start = ContinuousClock.now
  }

  deinit { clear() }

  /// Shows a share of the work, at most a hundred times a piece, and the time left where it is more than a moment.
  func show(_ words: String, _ done: Int64, of total: Int64) {
    guard isShown, total > 0 else { return }
    let percent = min(100, max(0, Int(Double(done) / Double(total) * 100)))
    let elapsed = state.withLock { state -> Duration? in
      if state.words != words { state = State(words: words, percent: -1, start: .now) }
      guard state.percent != percent else { return nil }
      state.percent = percent
      return state.start.duration(to: .now)
    }
    guard let elapsed else { return }
    let filled = min(30, percent * 30 / 100)
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 30 - filled)
    var left = ""
    if percent >= 3, elapsed > .seconds(2) {
      let seconds = (elapsed / percent * (100 - percent)).components.seconds
      if seconds > 0 {
        left = seconds < 90 ? ", about \(seconds) s left" : ", about \((seconds + 59) / 60) min left"
      }
    }
    Terminal.standardError.writeRaw("\r\(words) \(bar) \(percent) %\(left)\u{1B}[K")
  }

  /// Removes the line.
  func clear() {
    let wasShown = state.withLock { state in
      defer { state = State() }
      return state.percent >= 0
    }
    if isShown, wasShown { Terminal.standardError.writeRaw("\r\u{1B}[K") }
  }
}
