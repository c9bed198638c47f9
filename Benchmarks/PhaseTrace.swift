import Platform
import SystemPackage

/// When a migration took which steps on the file system: where its time goes, without a hook in it.
final class PhaseTrace: Sendable {
  private struct Mark {
    let name: String
    let time: ContinuousClock.Instant
  }

  private let marks = Mutex<[Mark]>([])

  /// The file system to pass in; only steps that change the disk are noted, several of a kind in a row once.
  var fileSystem: FileSystem {
    FileSystem { operation throws(Errno) in
      guard operation.kind.isWrite else { return }
      let name = "\(operation.kind.rawValue) \(operation.path.lastComponent?.string ?? "")"
      self.marks.withLock { $0.append(Mark(name: name, time: ContinuousClock().now)) }
    }
  }

  /// The gaps of more than 5 ms between two steps.
  func text(from start: ContinuousClock.Instant, _ end: ContinuousClock.Instant) -> String {
    let all = [Mark(name: "start", time: start)] + marks.withLock { $0 } + [Mark(name: "end", time: end)]
    var runs: [(name: String, next: String, seconds: Double)] = []
    for (mark, next) in zip(all, all.dropFirst()) {
      let length = inSeconds(next.time - mark.time)
      if let last = runs.indices.last, runs[last].name == mark.name {
        runs[last].seconds += length
        runs[last].next = next.name
      } else {
        runs.append((mark.name, next.name, length))
      }
    }
    return runs.filter { $0.seconds > 0.005 }.map { "\($0.name) \(rounded($0.seconds)) s" }.joined(separator: ", ")
  }
}
