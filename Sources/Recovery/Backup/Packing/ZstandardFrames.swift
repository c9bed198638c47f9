import Compatibility

/// Zstandard, as far as backups need it: one frame at a time.
///
/// The library has none of it. What does, such as the command `lazaret`, gives it once, before anything else is done.
package protocol ZstandardFrames: Sendable {
  /// What packs frames on one thread; nil where memory is short.
  func packer(level: Int) -> (any ZstandardPacker)?

  /// Unpacks one frame; nil where it is damaged, is not exactly one, or does not unpack to so many bytes.
  func unpack(_ frame: ArraySlice<UInt8>, count: Int) -> [UInt8]?

  /// What unpacks a file of any origin, piece by piece; nil where memory is short.
  func reader() -> (any ZstandardReader)?
}

/// Packs frames; used by one thread at a time.
package protocol ZstandardPacker: AnyObject {
  /// A frame with its content's size and checksum; empty where it was not possible.
  func pack(_ bytes: [UInt8]) -> [UInt8]
}

/// Unpacks a file of any number of frames; used by one thread at a time.
package protocol ZstandardReader: AnyObject {
  /// Adds a piece of the file, and hands over what it unpacks to; false where it is damaged.
  func read(_ bytes: [UInt8], visit: (ArraySlice<UInt8>) throws -> Void) throws -> Bool

  /// Whether the last frame is whole.
  var isWhole: Bool { get }
}

/// The Zstandard that this process was given.
package enum ZstandardSupport {
  private static let given = Mutex<(any ZstandardFrames)?>(nil)

  /// What was given; nil where the process has none.
  static var current: (any ZstandardFrames)? { given.withLock { $0 } }

  /// Gives this process its Zstandard.
  package static func give(_ frames: any ZstandardFrames) { given.withLock { $0 = frames } }
}
