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

  /// Writes text; a reader that has gone away is not waited for.
  func write(_ text: String) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let written = unsafe bytes.withUnsafeBytes { unsafe systemWrite(descriptor, $0.baseAddress, $0.count) }
      guard written > 0 else { return }
      bytes = bytes.dropFirst(written)
    }
  }
}

private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int) -> Int {
  guard let start = unsafe start else { return 0 }
  return unsafe write(descriptor, start, count)
}

/// A line on standard error that shows how far long work is; nothing where nobody looks.
final class ProgressLine: Sendable {
  private let isShown = Terminal.standardError.isInteractive
  private let last = Mutex(-1)

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
    Terminal.standardError.write("\r\(words) \(bar) \(percent) %")
  }

  /// Removes the line.
  func clear() {
    if isShown, last.withLock({ $0 }) >= 0 { Terminal.standardError.write("\r\u{1B}[K") }
  }
}
