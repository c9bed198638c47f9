internal import Dispatch
package import Platform
package import Salvage
package import SystemPackage

/// The making of a side, on a thread of its own.
final class SidePreparation: Sendable {
  struct State {
    var phase = "reading"
    var done: Int64 = 0
    var total: Int64 = 0
    var result: Result<OpenedSide, any Error>?
    var ended: Timestamp?
  }

  private let state = Mutex(State())
  private let group = DispatchGroup()

  init() { group.enter() }

  var snapshot: State { state.withLock { $0 } }

  func tell(_ phase: String, _ done: Int64, _ total: Int64) {
    state.withLock { state in
      state.phase = phase
      state.done = done
      state.total = total
    }
  }

  func finish(_ result: Result<OpenedSide, any Error>, at time: Timestamp) {
    state.withLock { state in
      state.result = result
      state.ended = time
    }
    group.leave()
  }

  /// Waits for the end, but no longer than so many milliseconds.
  func wait(milliseconds: Int) { _ = group.wait(timeout: .now() + .milliseconds(milliseconds)) }
}

/// A side of a store whose records can be looked at now.
package struct OpenedSide: Sendable {
  /// The records.
  package let store: BrowsedStore

  /// The folder of large values that lie outside of the store; nil where there is none.
  package let externalData: FilePath?

  /// When a copy of a store in use was made; nil for sides that do not change.
  package let takenAt: Timestamp?

  /// The account of the rows, where they were read from damaged bytes.
  package let report: SalvageReport?

  /// The bytes of a large value, by the name of its file; nil where it is not there.
  ///
  /// Names are UUIDs, so that no value of a store leads to another file.
  package func externalValue(_ name: String, limit: Int, in fileSystem: FileSystem) throws -> [UInt8]? {
    let isName =
      name.utf8.count == 36
      && name.utf8.allSatisfy { byte in
        let letter = byte | 0x20
        return byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte) || (0x61...0x66).contains(letter)
      }
    guard isName, let folder = externalData else { return nil }
    let path = folder.appending("_EXTERNAL_DATA").appending(name)
    guard try fileSystem.status(of: path, followingLinks: false)?.kind == .regular else { return nil }
    return try fileSystem.contents(of: path, limit: limit)
  }
}
