import Lazaret
import Synchronization

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

  let descriptor: Int32

  /// Whether a person is looking at it.
  var isInteractive: Bool { isatty(descriptor) == 1 }

  /// Writes text; what could steer a terminal is shown and not obeyed, whatever the text was made of.
  func write(_ text: String) {
    // Lines are the only structure; a carriage return is not one of ours.
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    writeRaw(lines.map { printable(String($0)) }.joined(separator: "\n"))
  }

  /// Writes text as it is.
  func writeRaw(_ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let written = unsafe bytes.withUnsafeBytes { unsafe systemWrite(descriptor, $0.baseAddress, $0.count) }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else {
        if descriptor == Self.standardOutput.descriptor { Self.lostOutput.store(true, ordering: .relaxed) }
        return
      }
      bytes = bytes.dropFirst(written)
    }
  }

  private static let lostOutput = Atomic<Bool>(false)

  /// Whether something could not be written to standard output, for instance to a file on a full disk.
  static var hasLostOutput: Bool { lostOutput.load(ordering: .relaxed) }
}

private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
  guard let start = unsafe start else { return 0 }
  return unsafe write(descriptor, start, count)
}

/// A line on standard error that shows how far long work is; nothing where nobody looks.
final class ProgressLine: Sendable {
  private let isShown = Terminal.standardError.isInteractive
  private let last = Mutex(-1)

  deinit { clear() }

  /// Shows a share of the work, at most a hundred times.
  func show(_ words: String, _ done: Int64, of total: Int64) {
    guard isShown, total > 0 else { return }
    let percent = Int(Double(done) / Double(total) * 100)
    let isNew = last.withLock { last in
      defer { last = percent }
      return last != percent
    }
    guard isNew else { return }
    let filled = min(30, percent * 30 / 100)
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: 30 - filled)
    Terminal.standardError.writeRaw("\r\(words) \(bar) \(percent) %")
  }

  /// Removes the line.
  func clear() {
    let wasShown = last.withLock { last in
      defer { last = -1 }
      return last >= 0
    }
    if isShown, wasShown { Terminal.standardError.writeRaw("\r\u{1B}[K") }
  }
}
