import Foundation
import Platform

/// Prints, at the beginning of each phase of a work, the time, the processor's time and the memory taken up to there.
final class MemoryTrace: Sendable {
  private let start: ContinuousClock.Instant
  private let last = Mutex("")

  init(_ start: ContinuousClock.Instant) { self.start = start }

  /// Notes that a phase goes on; only its beginning is printed.
  func note(_ phase: String) {
    let isNew = last.withLock { last in
      defer { last = phase }
      return last != phase
    }
    guard isNew, let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return }
    let lines = status.split(separator: "\n").filter { line in
      ["VmHWM", "RssAnon", "RssFile"].contains { line.hasPrefix($0) }
    }
    let memory = lines.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }.joined(separator: ", ")
    let line =
      "\(phase): \(rounded(inSeconds(start.duration(to: .now)))) s, "
      + "processor \(rounded(processorMilliseconds() / 1000)) s, \(memory)\n"
    FileHandle.standardError.write(Data(line.utf8))
  }
}
