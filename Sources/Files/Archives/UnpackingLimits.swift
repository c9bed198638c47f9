/// How much is unpacked at most: what a small file can blow up to is bounded.
public struct UnpackingLimits: Sendable, Hashable {
  /// The most bytes in all.
  public var bytes: Int64

  /// The most bytes for each packed byte, once more than 64 MiB were unpacked.
  ///
  /// DEFLATE itself cannot do more than 1,032; pages of zeros come near it.
  public var ratio: Int64

  /// The most files and folders.
  public var entries: Int

  /// Limits.
  public init(bytes: Int64 = 8 << 30, ratio: Int64 = 400, entries: Int = 100_000) {
    self.bytes = bytes
    self.ratio = ratio
    self.entries = entries
  }

  /// Checks what was made of how much.
  func check(made: Int64, of taken: Int64) throws(ArchiveError) {
    guard made <= bytes else { throw ArchiveError(.tooLarge, "it unpacks to more than \(bytes) bytes") }
    guard made <= 64 << 20 || made / ratio <= taken else {
      throw ArchiveError(.tooLarge, "it unpacks to more than \(ratio) times its size")
    }
  }
}
