package import Platform
import Synchronization
package import SystemPackage

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A file system on which something goes wrong at a chosen step.
package final class Trouble: Sendable {
  /// What goes wrong.
  package enum Kind: Sendable {
    /// The step fails with this error; later ones work again.
    case failure(Errno)

    /// The step and every later one fail: what the disk would hold had the process died there.
    case death

    /// The process is really killed, by SIGKILL.
    case kill
  }

  private let kind: Kind
  private let step: Int
  private let countsReads: Bool
  private let counter = Atomic<Int>(0)

  /// - Parameters:
  ///   - step: which step it happens at, from 1; 0 for never.
  ///   - countsReads: whether steps that only look are counted too.
  package init(_ kind: Kind, atStep step: Int, countingReads countsReads: Bool = false) {
    self.kind = kind
    self.step = step
    self.countsReads = countsReads
  }

  /// The steps so far.
  package var steps: Int { counter.load(ordering: .relaxed) }

  /// The file system to pass in.
  package var fileSystem: FileSystem {
    FileSystem { operation throws(Errno) in try self.observe(operation) }
  }

  private func observe(_ operation: FileOperation) throws(Errno) {
    let isCounted = operation.kind.isWrite || countsReads
    let now = isCounted ? counter.add(1, ordering: .relaxed).newValue : steps
    guard step > 0 else { return }
    switch kind {
    case .failure(let errno): if isCounted, now == step { throw errno }
    case .death: if now >= step { throw .ioError }
    case .kill: if isCounted, now == step { kill(getpid(), SIGKILL) }
    }
  }
}

extension Surroundings {
  /// Surroundings for tests: a clock that stands still and identifiers from a seed.
  package static func still(
    at time: String = "2026-11-21T10:11:12Z", seed: UInt64 = 1, fileSystem: FileSystem = FileSystem()
  ) -> Surroundings {
    let now = Timestamp(time) ?? Timestamp(secondsSince1970: 0)
    let count = SharedCounter()
    return Surroundings(
      fileSystem: fileSystem, now: { now },
      makeUUID: {
        var generator = SeededGenerator(seed: seed &+ count.next())
        return UniversalIdentifier.random(using: &generator)
      })
  }
}

private final class SharedCounter: Sendable {
  private let value = Atomic<UInt64>(0)
  func next() -> UInt64 { value.add(1, ordering: .relaxed).newValue }
}
