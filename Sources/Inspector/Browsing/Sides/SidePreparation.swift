internal import Dispatch
package import Platform
package import Salvage
package import SystemPackage

/// The preparation of a side on its own thread.
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

  func wait(milliseconds: Int) { _ = group.wait(timeout: .now() + .milliseconds(milliseconds)) }
}

/// A side with browsable records.
package struct OpenedSide: Sendable {
  package let store: BrowsedStore

  /// The folder of external values, if any.
  package let externalData: FilePath?

  /// When a store in use was copied; nil for unchanging sides.
  package let takenAt: Timestamp?

  package let report: SalvageReport?

  /// Returns an external value by file name; nil if missing.
  ///
  /// Names must be UUIDs, so no value of a store leads to another file.
  func externalValue(_ name: String, limit: Int, in fileSystem: FileSystem) throws -> [UInt8]? {
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
